/**
 * Calls `done` once `element`, as it is now, has been painted: some of its box is
 * left by what clips it, nothing around it is invisible, and the second frame comes
 * after the first is on the screen. A document that nobody sees has no frames. Below
 * the fold counts: whether it was in view is whenViewable's to say.
 */
export const whenPainted = (win: Window, element: Element, done: () => void): void => {
  const look = () => {
    // Browsers before 2024 know of no invisibility.
    const isVisible = element.checkVisibility?.(VISIBLE) ?? true;
    if (isVisible) win.requestAnimationFrame(() => win.requestAnimationFrame(done));
    else setTimeout(look, LOOK_MS);
  };
  try {
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries[entries.length - 1]!.intersectionRatio < PART) return;
        observer.disconnect();
        look();
      },
      {rootMargin: '99999px', threshold: PART},
    );
    observer.observe(element);
  } catch {
    look(); // it is not what it was
  }
};

/** The part of it that must not be clipped away. */
const PART = 0.01;
/** How often something invisible is looked at. */
const LOOK_MS = 200;
const VISIBLE = {visibilityProperty: true, opacityProperty: true};
