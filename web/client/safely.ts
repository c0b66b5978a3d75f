/**
 * Wraps what the browser or the page calls, so that whatever goes wrong in it
 * stays with us: a page never breaks because of its ads.
 */
export const safely =
  <A extends unknown[]>(fn: (...args: A) => void): ((...args: A) => void) =>
  (...args) => {
    try {
      fn(...args);
    } catch {
      // No report either: a console full of our errors is the publisher's to explain.
    }
  };
