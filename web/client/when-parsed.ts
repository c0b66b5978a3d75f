/**
 * Calls `done` once DOMContentLoaded has been dispatched, at once where it
 * already was. readyState alone cannot say: "interactive" begins before the
 * deferred scripts run, in which frameworks hydrate, and the event comes after.
 */
export const whenParsed = (win: Window, done: () => void): void => {
  const [navigation] = win.performance.getEntriesByType(
    'navigation',
  ) as PerformanceNavigationTiming[];
  if (win.document.readyState === 'complete' || navigation?.domContentLoadedEventStart) {
    done();
    return;
  }
  win.document.addEventListener('DOMContentLoaded', done, {once: true});
};
