import {isRecord} from '../is-record.ts';
import {chooseFormat} from './choose-format.ts';
import {isId} from './read-pin.ts';
import type {PageSlot} from './types.ts';

const MAX_SIDE = 10_000;

/**
 * The magazine slots that the edge has written into a page (`__ts_ad_slots`), in
 * the size that fits the viewport.
 */
export const getPageSlots = (value: unknown, viewportWidth: number): PageSlot[] => {
  const slots: PageSlot[] = [];
  for (const entry of Array.isArray(value) ? value : []) {
    if (!isRecord(entry) || entry.kind !== 'magazine' || !isId(entry.id)) continue;
    const {id, div_id: divId, formats} = entry;
    const sizes = (Array.isArray(formats) ? formats : []).filter(isFormat);
    const [w, h] = chooseFormat(sizes, viewportWidth) ?? [];
    if (typeof divId !== 'string' || !w || !h) continue;
    slots.push({id, w, h, find: (doc) => doc.getElementById(divId)});
  }
  return slots;
};

const isFormat = (value: unknown): value is [number, number] =>
  Array.isArray(value) && isSide(value[0]) && isSide(value[1]);

const isSide = (value: unknown): value is number =>
  typeof value === 'number' && value >= 1 && value <= MAX_SIDE;

/**
 * The slots that a page has marked itself:
 * `<div data-deckle-slot="id" data-w="300" data-h="250">`. Those without a valid
 * id and size are left out, and of those with one id all but the first.
 */
export const getMarkedSlots = (doc: Document): PageSlot[] => {
  const slots = new Map<string, PageSlot>();
  for (const element of Array.from(doc.querySelectorAll<HTMLElement>('[data-deckle-slot]'))) {
    const {deckleSlot: id, w, h} = element.dataset;
    const size = [Number(w), Number(h)];
    if (!isId(id) || !isFormat(size) || slots.has(id)) continue;
    slots.set(id, {id, w: size[0], h: size[1], find: () => element});
  }
  return Array.from(slots.values());
};
