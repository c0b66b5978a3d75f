import type {Page} from './types.ts';

// The contrast that WCAG 2.2 asks for at level AA: of text (1.4.3), and of what
// else has to be seen (1.4.11).
const TEXT_CONTRAST = 4.5;
const SIGN_CONTRAST = 3;

const PAPER = '#faf7f1';
const INK = '#1c1916';
const WHITE = '#ffffff';
const BLACK = '#000000';

/** The colours that a page is printed in. */
export interface Colors {
  readonly paper: string;
  readonly ink: string;
  /** Of a button or a rule. */
  readonly accent: string;
  /** Of text on something in the accent. */
  readonly onAccent: string;
  /** Of small text that should stand out. */
  readonly mark: string;
}

/** The colours of a page, corrected where they could not be read. */
export const getReadableColors = ({background, ink, accent}: Colored): Colors => {
  const paper = isColor(background) ? background : PAPER;
  const text = isColor(ink) && contrast(ink, paper) >= TEXT_CONTRAST ? ink : getInk(paper);
  const sign = isColor(accent) && contrast(accent, paper) >= SIGN_CONTRAST ? accent : text;
  return {
    paper,
    ink: text,
    accent: sign,
    onAccent: getInk(sign),
    mark: contrast(sign, paper) >= TEXT_CONTRAST ? sign : text,
  };
};

type Colored = Pick<Page, 'background' | 'ink' | 'accent'>;

/** Our own ink where it can be read; black or white can be read on everything. */
const getInk = (paper: string): string => {
  if (contrast(INK, paper) >= TEXT_CONTRAST) return INK;
  return contrast(WHITE, paper) >= contrast(BLACK, paper) ? WHITE : BLACK;
};

const isColor = (value: string): boolean => /^#[0-9a-f]{6}$/i.test(value);

/** WCAG's contrast of two colours, 1 to 21. */
export const contrast = (a: string, b: string): number => {
  const [la, lb] = [luminance(a), luminance(b)];
  return (Math.max(la, lb) + 0.05) / (Math.min(la, lb) + 0.05);
};

const luminance = (color: string): number => {
  const linear = (at: number) => {
    const c = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5);
};
