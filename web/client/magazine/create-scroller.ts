/** A swipe has ended when nothing has moved for so long, where there is no scrollend. */
const REST_MS = 150;

export interface Scroller {
  /** Scrolls to a page, in one go where the reader or `smooth` wants no motion. */
  scrollTo(page: number, smooth: boolean): void;
}

/**
 * The pages lie side by side in a scroller that snaps, so that a swipe is the
 * browser's own. `settled` is called with the page on which one comes to rest.
 */
export const createScroller = (
  element: HTMLElement,
  rtl: boolean,
  settled: (page: number) => void,
): Scroller => {
  const settle = () => {
    if (element.clientWidth)
      settled(Math.round(Math.abs(element.scrollLeft) / element.clientWidth));
  };
  if ('onscrollend' in element) element.addEventListener('scrollend', settle);
  else {
    let timer: ReturnType<typeof setTimeout>;
    (element as HTMLElement).addEventListener('scroll', () => {
      clearTimeout(timer);
      timer = setTimeout(settle, REST_MS);
    });
  }
  return {
    scrollTo(page, smooth) {
      const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
      element.scrollTo({
        left: page * element.clientWidth * (rtl ? -1 : 1),
        behavior: smooth && !calm ? 'smooth' : 'instant',
      });
    },
  };
};
