import {watchDocument} from '../watch-document.ts';
import type {PageSlot} from './types.ts';

/** How long after DOMContentLoaded a slot's element may still be created. */
const ELEMENT_GRACE_MS = 2000;

/**
 * The elements of slots, each as soon as it is in the document; undefined for one
 * that never came. `found` is called for each, before anything else can happen.
 */
export const findPlaces = (
  win: Window,
  slots: readonly PageSlot[],
  found: (slot: PageSlot, place: HTMLElement) => void,
): Map<string, Promise<HTMLElement | undefined>> => {
  const places = new Map<string, Promise<HTMLElement | undefined>>();
  const missing = new Map<PageSlot, (place?: HTMLElement) => void>();
  for (const slot of slots) {
    places.set(slot.id, new Promise((resolve) => missing.set(slot, resolve)));
  }
  watchDocument(win, ELEMENT_GRACE_MS, (last) => {
    for (const [slot, resolve] of missing) {
      const place = slot.find(win.document);
      if (!place && !last) continue;
      if (place) found(slot, place);
      resolve(place ?? undefined);
      missing.delete(slot);
    }
    return missing.size === 0;
  });
  return places;
};
