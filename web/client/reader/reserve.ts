/**
 * Keeps a slot's space free until its magazine is there, so that nothing below it
 * moves; where the page does so itself nothing is changed. Gives back how to end
 * it. A slot that stays empty gives its space up unless a reader would see that.
 */
export const reserve = (win: Window, element: HTMLElement, height: number): (() => void) => {
  const {style} = element;
  if (Number.parseFloat(win.getComputedStyle(element).minHeight) >= height) return () => {};
  const before = style.minHeight;
  style.minHeight = `${height}px`;
  return () => {
    const {top, bottom} = element.getBoundingClientRect();
    if (bottom < 0 || top > win.innerHeight) style.minHeight = before;
  };
};
