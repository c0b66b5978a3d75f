import type {Layout, Page} from './types.ts';

/** More text than that does not stand on a picture. */
const MAX_ON_PICTURE = 160;

/** How a page is set, where the creative leaves it open or asks for what it has not. */
export const chooseLayout = ({layout, image, body}: Page): Layout => {
  if (!image) return 'text';
  return layout || (body.length <= MAX_ON_PICTURE ? 'full' : 'split');
};

/**
 * What a headline's size is multiplied by, so that a long one needs not many more
 * lines than a short one. A CJK character is about two Latin ones wide.
 */
export const fitHeadline = (headline: string): number => {
  let width = 0;
  for (const character of headline) width += character > '⺀' ? 2 : 1;
  if (width <= 24) return 1;
  return width <= 48 ? 0.82 : 0.66;
};
