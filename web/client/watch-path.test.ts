import {expect, test, vi} from 'vitest';
import {watchPath} from './watch-path.ts';

/** A window whose path changes as a page's script changes it. */
const createWindow = (hasNavigation: boolean) => {
  const listeners = new Map<string, () => void>();
  const location = {pathname: '/'};
  const go = (_state: unknown, _title: string, url?: string | URL | null) => {
    if (url) location.pathname = String(url).split('?')[0]!;
    listeners.get('currententrychange')?.();
  };
  const listen = (type: string, listener: () => void) => {
    listeners.set(type, listener);
  };
  const win = {
    location,
    history: {pushState: vi.fn(go), replaceState: vi.fn(go)},
    addEventListener: listen,
    ...(hasNavigation && {navigation: {addEventListener: listen}}),
  };
  return {win: win as unknown as Window, location, fire: (type: string) => listeners.get(type)?.()};
};

test.each([true, false])('another path, and only that (Navigation API: %s)', (hasNavigation) => {
  const {win, location, fire} = createWindow(hasNavigation);
  const paths: string[] = [];
  watchPath(win, () => paths.push(location.pathname));
  win.history.pushState(null, '', '/a');
  win.history.replaceState(null, '', '/a?tab=2');
  win.history.replaceState(null, '', '/b');
  win.history.pushState({}, '');
  location.pathname = '/a';
  fire(hasNavigation ? 'currententrychange' : 'popstate');
  expect(paths).toEqual(['/a', '/b', '/a']);
});

test('what throws in us does not reach the page', () => {
  const {win} = createWindow(false);
  watchPath(win, () => {
    throw new Error('ours');
  });
  expect(() => win.history.pushState(null, '', '/a')).not.toThrow();
});
