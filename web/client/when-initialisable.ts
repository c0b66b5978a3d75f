import type {Settings} from './page.ts';
import {whenParsed} from './when-parsed.ts';

/**
 * Calls `done` at the moment that `init` names: a page whose framework hydrates
 * must not find ads in elements that it is about to compare with its own.
 */
export const whenInitialisable = (win: Window, init: Settings['init'], done: () => void): void => {
  if (init === 'dom') whenParsed(win, done);
  else if (init === 'load' && win.document.readyState !== 'complete') {
    win.addEventListener('load', () => done(), {once: true});
  } else done();
};
