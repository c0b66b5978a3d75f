/**
 * Calls `done` once what is in the document now has been painted: the second
 * frame comes after the first is on the screen. A document that nobody sees has
 * no frames.
 */
export const whenPainted = (win: Window, done: () => void): void => {
  win.requestAnimationFrame(() => win.requestAnimationFrame(done));
};
