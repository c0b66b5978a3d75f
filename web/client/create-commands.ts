import {takeCommands} from './take-commands.ts';

/**
 * Puts `window.deckle` in place and runs what the page has queued in
 * `deckle.cmd`. Returns how to count, or undefined where the client runs already.
 */
export const createCommands = (win: Window): ((what: string) => void) | undefined => {
  const counts: Record<string, number> = {};
  if (!takeCommands(win, {counts})) return undefined;
  return (what) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
};
