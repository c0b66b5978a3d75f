/**
 * Keeps a slot's space free until its magazine is there, so that nothing below it
 * moves; where the page does so itself nothing is changed. Gives back how to end
 * it. A slot that stays empty gives its space up unless a reader would see that.
 */
export const reserve = (win: Window, element: HTMLElement, height: number): (() => void) => {
  const {style} = element;
  const now = win.getComputedStyle(element);
  // The runner of hole 1 may have done it already: keep-space.ts.
  const isOurs = now.getPropertyValue('--deckle') !== '';
  if (Number.parseFloat(now.minHeight) >= height && !isOurs) return () => {};
  const before = style.minHeight;
  style.minHeight = `${height}px`;
  return () => {
    const {top, bottom} = element.getBoundingClientRect();
    if (bottom < 0 || top > win.innerHeight) style.minHeight = before || (isOurs ? '0' : '');
  };
};
