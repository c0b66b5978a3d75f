import {watchConsent} from './watch-consent.ts';
import {whenShown} from './when-shown.ts';

interface PermissionListener {
  /**
   * The slots of the page may be displayed; `yes`: and bids be asked for. Only the
   * first time counts.
   */
  done(yes: boolean): void;
  /** The reader has said yes or no. May come again. */
  heard(yes: boolean): void;
}

/**
 * Waits for what a page lacks that the gate skipped for this reason; one that it did
 * not skip lacks nothing. Returns how else to tell what the reader has said: a CMP
 * may have no API that we know.
 */
export const whenPermitted = (
  win: Window,
  skip: string,
  {done, heard}: PermissionListener,
): ((yes: boolean) => void) => {
  const waits = skip === 'no_consent';
  const onAnswer = (yes: boolean) => {
    heard(yes);
    if (waits) done(yes);
  };
  watchConsent(win, {
    onAnswer,
    onNone() {
      if (waits) done(false);
    },
  });
  if (skip === 'prefetch') whenShown(win.document, () => done(true));
  else if (!waits) done(true);
  return onAnswer;
};
