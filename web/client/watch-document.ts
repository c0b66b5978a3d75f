import {safely} from './safely.ts';
import {whenParsed} from './when-parsed.ts';

/**
 * Calls `look` now and whenever the document has grown, until it returns true,
 * and for the last time `graceMs` after DOMContentLoaded.
 */
export const watchDocument = (
  win: Window,
  graceMs: number,
  look: (last: boolean) => boolean,
): void => {
  if (look(false)) return;
  const observer = new MutationObserver(
    safely(() => {
      if (look(false)) observer.disconnect();
    }),
  );
  // A framework may give an element its id after it has put it there.
  observer.observe(win.document, {childList: true, subtree: true, attributeFilter: ['id']});
  const end = safely(() => {
    observer.disconnect();
    look(true);
  });
  whenParsed(win, () => (graceMs ? setTimeout(end, graceMs) : end()));
};
