import type {AdServer} from './create-ad-server.ts';
import type {Slot} from './page.ts';
import {watchDocument} from './watch-document.ts';

/** How long after DOMContentLoaded a slot's element may still be created. */
const ELEMENT_GRACE_MS = 2000;

/**
 * Requests slots as their elements appear, those that appear together in one
 * request, until the page `isGone` to another path.
 */
export const requestWhenPresent = (
  win: Window,
  slots: readonly Slot[],
  {adServer, isGone}: {adServer: AdServer; isGone(): boolean},
): void => {
  let missing = slots;
  watchDocument(win, ELEMENT_GRACE_MS, () => {
    if (isGone()) return true;
    const isPresent = ({divId}: Slot) => win.document.getElementById(divId) !== null;
    const present = missing.filter(isPresent);
    missing = missing.filter((slot) => !present.includes(slot));
    if (present.length) adServer.request(present);
    return missing.length === 0;
  });
};
