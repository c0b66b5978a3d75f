/**
 * Calls `done` once `element`, as it is now, has been painted: it has a box, and
 * the second frame comes after the first is on the screen. A document that nobody
 * sees has no frames, and what is inside something hidden has no box.
 */
export const whenPainted = (win: Window, element: Element, done: () => void): void => {
  if (!element.getClientRects().length) {
    const observer = new ResizeObserver(() => {
      if (!element.getClientRects().length) return;
      observer.disconnect();
      whenPainted(win, element, done);
    });
    observer.observe(element);
    return;
  }
  win.requestAnimationFrame(() => win.requestAnimationFrame(done));
};
