import {isRecord} from '../is-record.ts';
import type {Creative, Image, Page} from './types.ts';

const MAX_PAGES = 12;

/**
 * The creative that `value` holds, checked; undefined where it has no page that
 * could be shown. Strings stay strings: nothing of them is ever parsed as HTML.
 * Addresses become absolute from `base`.
 */
export const readCreative = (value: unknown, base: string): Creative | undefined => {
  if (!isRecord(value) || !Array.isArray(value.pages)) return undefined;
  const pages = value.pages
    .slice(0, MAX_PAGES)
    .filter(isRecord)
    .map((page) => readPage(page, base));
  return pages.length ? {pages, landingUrl: toHTTP(value.landingUrl, base)} : undefined;
};

const readPage = (page: Record<string, unknown>, base: string): Page => {
  const {layout} = page;
  const image = readImage(page.image, base);
  return {
    headline: text(page.headline),
    sub: text(page.sub),
    body: text(page.body),
    caption: text(page.caption),
    tag: text(page.tag),
    background: text(page.background),
    ink: text(page.ink),
    accent: text(page.accent),
    ctaLabel: text(page.ctaLabel),
    layout: layout === 'full' || layout === 'split' || layout === 'text' ? layout : '',
    ...(image ? {image} : {}),
  };
};

const readImage = (value: unknown, base: string): Image | undefined => {
  if (!isRecord(value)) return undefined;
  const src = toHTTP(value.src, base);
  const focus = isRecord(value.focus) ? value.focus : {};
  return src
    ? {src, alt: text(value.alt), focus: {x: fraction(focus.x), y: fraction(focus.y)}}
    : undefined;
};

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const fraction = (value: unknown): number =>
  typeof value === 'number' && value >= 0 && value <= 1 ? value : 0.5;

/** An address that may be opened or loaded, or ''. */
export const toHTTP = (value: unknown, base: string): string => {
  if (typeof value !== 'string' || !value) return '';
  try {
    const url = new URL(value, base);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : '';
  } catch {
    return '';
  }
};
