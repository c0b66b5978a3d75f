import {createIcon, createNode} from './create-node.ts';
import {createPage} from './create-page.ts';
import type {Labels} from './get-labels.ts';
import type {Setting} from './get-setting.ts';
import {guessLanguage} from './guess-language.ts';
import type {Creative} from './types.ts';

export interface CoverOptions {
  readonly creative: Creative;
  readonly labels: Labels;
  readonly setting: Setting;
  /** The page whose corner is folded: the magazine lies open there. */
  readonly folded: number | undefined;
  readonly width: number;
  readonly height: number;
  onOpen(): void;
}

/** What is in the slot while the magazine is closed. */
export interface Cover {
  readonly node: HTMLElement;
  readonly button: HTMLButtonElement;
  /** The picture is there, or there is none. */
  readonly ready: Promise<void>;
}

const EXPAND = 'M14 4h6v6M20 4l-7 7M10 20H4v-6M4 20l7-7';

/** Draws the closed magazine: its cover, or the page that the reader has folded. */
export const createCover = (doc: Document, options: CoverOptions): Cover => {
  const {creative, labels, setting, folded} = options;
  const shown = creative.pages[folded ?? 0]!;
  const {page, picture} = createPage(doc, shown, {
    collapsed: true,
    cta: '',
    landingUrl: '',
    folio: '',
    lang: guessLanguage(creative, setting.lang),
    onCTA: () => {},
  });
  page.classList.toggle('folded', folded !== undefined);
  const title = shown.headline || shown.image?.alt;
  const name = [labels.ad, labels.open, title].filter(Boolean).join(': ');
  const button = createNode(
    doc,
    'button',
    {class: 'open', type: 'button', 'aria-label': name, 'aria-haspopup': 'dialog'},
    createIcon(doc, EXPAND),
  );
  button.addEventListener('click', options.onOpen);
  const node = createNode(
    doc,
    'div',
    {class: 'slot', lang: setting.lang, dir: setting.dir},
    page,
    button,
  );
  node.classList.toggle('turn-rtl', setting.rtl);
  node.classList.toggle('vertical', setting.vertical);
  node.style.width = `${options.width}px`;
  node.style.height = `${options.height}px`;
  const loaded = picture
    ? new Promise<void>((resolve) => {
        picture.addEventListener('load', () => resolve());
        picture.addEventListener('error', () => resolve());
      })
    : Promise.resolve();
  return {node, button, ready: loaded};
};
