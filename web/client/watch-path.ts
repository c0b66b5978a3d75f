import {safely} from './safely.ts';

/** https://html.spec.whatwg.org/multipage/nav-history-apis.html#navigation-interface */
interface Navigation {
  addEventListener(type: 'currententrychange', listener: () => void): void;
}

/**
 * Calls `changed` when the page's own script has gone to another path without
 * loading a document. Where the browser has no Navigation API, `history` tells.
 */
export const watchPath = (win: Window, changed: () => void): void => {
  let path = win.location.pathname;
  const check = safely(() => {
    if (win.location.pathname === path) return;
    path = win.location.pathname;
    changed();
  });
  const {navigation} = win as {navigation?: Navigation};
  if (navigation) {
    navigation.addEventListener('currententrychange', check);
    return;
  }
  win.addEventListener('popstate', check);
  for (const method of ['pushState', 'replaceState'] as const) {
    const original = win.history[method];
    win.history[method] = function (...args) {
      original.apply(this, args);
      check();
    };
  }
};
