// A creative, as internal/catalog/creative.schema.json describes it. Types only.

/** A magazine of 1 to 12 pages, of which the first is the cover. */
export interface Creative {
  readonly pages: readonly Page[];
  /** Where its calls to action lead; http or https. */
  readonly landingUrl: string;
}

/** Every text is plain text. Colours are #rrggbb, or '' for the default. */
export interface Page {
  readonly headline: string;
  readonly sub: string;
  /** Paragraphs, one a line. */
  readonly body: string;
  readonly caption: string;
  readonly tag: string;
  readonly image?: Image;
  readonly background: string;
  readonly ink: string;
  readonly accent: string;
  readonly ctaLabel: string;
  readonly layout: Layout | '';
}

export interface Image {
  readonly src: string;
  readonly alt: string;
  /** The point that stays in view, in fractions of width and height. */
  readonly focus: {readonly x: number; readonly y: number};
}

/**
 * How a page is set: the picture under the text, the picture beside it, or text
 * alone.
 */
export type Layout = 'full' | 'split' | 'text';
