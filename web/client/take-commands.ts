import type {Deckle} from './page.ts';
import {safely} from './safely.ts';

/**
 * Puts `window.deckle` in place with `members`, and runs what the page has queued
 * in `deckle.cmd`. Returns false where a script with these members runs already:
 * a page may have been given it twice.
 */
export const takeCommands = (win: Window, members: Omit<Deckle, 'cmd'>): boolean => {
  // The page may hold on to the object that it made: it is kept, not replaced.
  const deckle: Deckle = win.deckle ?? {cmd: []};
  if (Object.keys(members).some((key) => Object.keys(deckle).includes(key))) return false;
  const queued = deckle.cmd ?? [];
  win.deckle = Object.assign(deckle, members);
  if (!Array.isArray(queued)) return true; // our other script has taken it
  const run: Deckle['cmd']['push'] = (...commands) => {
    for (const command of commands) safely(command)();
    return 0;
  };
  deckle.cmd = {push: run};
  run(...queued);
  return true;
};
