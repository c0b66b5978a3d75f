import {safely} from './safely.ts';

/** Calls `command` when GPT's API is there; never, where something blocks gpt.js. */
export const withGPT = (win: Window, command: (gpt: typeof googletag) => void): void => {
  // What stands here before gpt.js has run is a plain object, made by whoever comes first.
  const queue = (win.googletag ?? {}) as {cmd?: (() => void)[]};
  win.googletag = queue as typeof googletag;
  queue.cmd ??= [];
  queue.cmd.push(safely(() => command(win.googletag!)));
};
