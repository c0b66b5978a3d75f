import {watchConsent} from './watch-consent.ts';
import {whenShown} from './when-shown.ts';

/**
 * Calls `done` when the slots of a page may be displayed that the gate skipped
 * for this reason, or at once where it did not skip; `refused` whenever the
 * reader has refused.
 */
export const whenPermitted = (
  win: Window,
  skip: string,
  {done, refused}: {done(): void; refused(): void},
): void => {
  watchConsent(win, {
    onAnswer() {
      if (skip === 'no_consent') done();
    },
    onRefusal: refused,
  });
  if (skip === 'prefetch') whenShown(win.document, done);
  else if (skip !== 'no_consent') done();
};
