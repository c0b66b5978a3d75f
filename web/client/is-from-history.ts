/**
 * Whether this document came back out of the browser's own store: its bids are
 * those of an earlier visit, and were used in it. A history navigation that went
 * to the server has transferred something.
 */
export const isFromHistory = (win: Window): boolean => {
  const [navigation] = win.performance.getEntriesByType(
    'navigation',
  ) as PerformanceNavigationTiming[];
  return navigation?.type === 'back_forward' && !navigation.transferSize;
};
