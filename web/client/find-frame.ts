/** Creatives nest frames; a chain longer than this is not one of ours. */
const MAX_DEPTH = 10;

/**
 * The frame inside `element` that is `source` or holds it, at whatever depth.
 * A window's parent can be read across origins, its document cannot.
 */
export const findFrame = (
  source: MessageEventSource | null,
  element: Element,
): HTMLIFrameElement | undefined => {
  const frames = Array.from(element.getElementsByTagName('iframe'));
  let win = source as Window | null;
  for (let depth = 0; win && depth < MAX_DEPTH; depth++) {
    const frame = frames.find(({contentWindow}) => contentWindow === win);
    if (frame) return frame;
    if (win.parent === win) return undefined;
    win = win.parent;
  }
  return undefined;
};
