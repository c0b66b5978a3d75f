const DURATION_MS = 340;

/**
 * Moves `element` out of the place of `from`, or back into it, with transforms
 * alone, so that the compositor can do it. Calls `done` at the end, at once for
 * readers who do not want motion.
 */
export const move = (element: Element, from: Element, back: boolean, done: () => void): void => {
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  if (calm || typeof element.animate !== 'function') {
    done();
    return;
  }
  const small = from.getBoundingClientRect();
  const large = element.getBoundingClientRect();
  const x = small.left + small.width / 2 - large.left - large.width / 2;
  const y = small.top + small.height / 2 - large.top - large.height / 2;
  const scale = Math.max(0.1, Math.min(small.width / large.width, small.height / large.height));
  const there = {transform: `translate(${x}px, ${y}px) scale(${scale})`, opacity: 0.2};
  const here = {transform: 'none', opacity: 1};
  const animation = element.animate(back ? [here, there] : [there, here], {
    duration: back ? DURATION_MS * 0.7 : DURATION_MS,
    easing: back ? 'cubic-bezier(.4, 0, .8, .4)' : 'cubic-bezier(.16, 1, .3, 1)',
  });
  animation.onfinish = animation.oncancel = done;
};
