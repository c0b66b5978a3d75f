import type {Deckle} from './page.ts';
import {safely} from './safely.ts';

/**
 * Puts `window.deckle` in place and runs what the page has queued in
 * `deckle.cmd`. Returns how to count, or undefined where the client runs already:
 * a page may have been given it twice.
 */
export const createCommands = (win: Window): ((what: string) => void) | undefined => {
  // The page may hold on to the object that it made: it is kept, not replaced.
  const deckle: Deckle = win.deckle ?? {cmd: []};
  const queued = deckle.cmd ?? [];
  if (!Array.isArray(queued)) return undefined;
  const counts: Record<string, number> = {};
  const run: Deckle['cmd']['push'] = (...commands) => {
    for (const command of commands) safely(command)();
    return 0;
  };
  win.deckle = Object.assign(deckle, {cmd: {push: run}, counts});
  run(...queued);
  return (what) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
};
