/**
 * Gives GPT's frame, and the container that GPT has put around it, the size of
 * the bid: line items of header bidding have creatives of 1x1 for every size.
 */
export const sizeFrame = (frame: HTMLElement, slot: Element, w: number, h: number): void => {
  if (!w || !h) return;
  const container = frame.parentElement;
  for (const element of container && container !== slot ? [frame, container] : [frame]) {
    element.style.width = `${w}px`;
    element.style.height = `${h}px`;
  }
};
