const RATIO = 0.5;
const DWELL_MS = 1000;

/**
 * Calls `done` once. The MRC calls a display impression viewable when half of it
 * has been in view, in a document that is on the screen, for one second without a
 * break. Where a browser cannot say, it is never called.
 */
export const whenViewable = (win: Window, element: Element, done: () => void): void => {
  const {document: doc} = win;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let inView = false;
  const look = () => {
    clearTimeout(timer);
    if (inView && doc.visibilityState === 'visible') timer = setTimeout(end, DWELL_MS);
  };
  const observer = new IntersectionObserver(
    (entries) => {
      inView = entries[entries.length - 1]!.intersectionRatio >= RATIO;
      look();
    },
    {threshold: RATIO},
  );
  const end = () => {
    observer.disconnect();
    doc.removeEventListener('visibilitychange', look);
    done();
  };
  doc.addEventListener('visibilitychange', look);
  observer.observe(element);
};
