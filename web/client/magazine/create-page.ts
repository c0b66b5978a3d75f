import {chooseLayout, fitHeadline} from './choose-layout.ts';
import {createNode} from './create-node.ts';
import {getReadableColors} from './readable-colors.ts';
import type {Image, Page} from './types.ts';

/** A body of that many characters is read, not glanced at. */
const LONG = 240;

/** What a page is drawn for. */
export interface PageOptions {
  /** In the slot; the headline is then none of the page's outline. */
  readonly collapsed: boolean;
  /** The label of its link, '' for none. */
  readonly cta: string;
  readonly landingUrl: string;
  /** Of its text, where it is another than that of the page around. */
  readonly lang: string | undefined;
  /** Its printed number; '' for none. */
  readonly folio: string;
  onCTA(): void;
}

/** A page's nodes: the container, and its picture where it has one. */
export interface PageNodes {
  readonly page: HTMLElement;
  readonly picture: HTMLImageElement | undefined;
}

/**
 * Draws a page: a leaf of paper with picture and text, and behind its corner the
 * flap that shows when the page has the class `folded`.
 */
export const createPage = (doc: Document, page: Page, options: PageOptions): PageNodes => {
  const picture = page.image && createPicture(doc, page.image);
  const leaf = createNode(
    doc,
    'div',
    {class: 'leaf', 'data-layout': chooseLayout(page)},
    picture && createNode(doc, 'figure', {class: 'art'}, picture, createCaption(doc, page)),
    createText(doc, page, options),
    options.folio
      ? createNode(doc, 'span', {class: 'folio', 'aria-hidden': 'true'}, options.folio)
      : undefined,
    createNode(doc, 'div', {class: 'shade'}),
  );
  // A picture that does not come leaves a page of text.
  picture?.addEventListener('error', () => {
    picture.parentElement?.remove();
    leaf.dataset.layout = 'text';
  });
  const node = createNode(
    doc,
    'div',
    {class: 'page'},
    createNode(doc, 'div', {class: 'flap'}),
    leaf,
  );
  const {paper, ink, accent, onAccent, mark} = getReadableColors(page);
  const colors = {paper, ink, accent, 'on-accent': onAccent, mark, fit: fitHeadline(page.headline)};
  for (const [name, value] of Object.entries(colors)) {
    node.style.setProperty(`--${name}`, String(value));
  }
  return {page: node, picture};
};

const createPicture = (doc: Document, {src, alt, focus}: Image): HTMLImageElement => {
  const picture = createNode(doc, 'img', {alt, decoding: 'async', draggable: 'false'});
  picture.style.objectPosition = `${focus.x * 100}% ${focus.y * 100}%`;
  picture.src = src;
  return picture;
};

const createCaption = (doc: Document, {caption}: Page) =>
  caption ? createNode(doc, 'figcaption', {dir: 'auto'}, caption) : undefined;

/** Text has its own direction, whatever the page around it has. */
const createText = (doc: Document, page: Page, options: PageOptions): HTMLElement => {
  const {headline, sub, body, tag, caption, image} = page;
  const line = (name: 'p' | 'h2', kind: string, text: string) =>
    text ? createNode(doc, name, {class: kind}, text) : undefined;
  const paragraphs = body
    .split('\n')
    .filter((text) => text.trim())
    .map((text) => createNode(doc, 'p', {}, text));
  const head = [
    line('p', 'tag', tag),
    line(options.collapsed ? 'p' : 'h2', 'headline', headline),
    line('p', 'sub', sub),
  ];
  const rest = [
    paragraphs.length ? createNode(doc, 'div', {class: 'body'}, ...paragraphs) : undefined,
    image ? undefined : line('p', 'caption', caption),
    createCTA(doc, options),
  ];
  return createNode(
    doc,
    'div',
    {class: body.length > LONG ? 'text long' : 'text', dir: 'auto', lang: options.lang},
    createNode(doc, 'div', {class: 'head'}, ...head),
    createNode(doc, 'div', {class: 'rest'}, ...rest),
  );
};

const createCTA = (doc: Document, {cta, landingUrl, onCTA}: PageOptions) => {
  if (!cta || !landingUrl) return undefined;
  const attributes = {class: 'cta', href: landingUrl, target: '_blank', rel: 'noopener sponsored'};
  const link = createNode(doc, 'a', attributes, cta);
  link.addEventListener('click', onCTA);
  link.addEventListener('auxclick', ({button}) => {
    if (button === 1) onCTA(); // the middle button opens a tab as well
  });
  return link;
};
