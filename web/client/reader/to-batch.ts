import {toJSON} from './to-json.ts';
import type {Imp, Memory, Pin} from './types.ts';

// What a batch may carry (POST /v1/serve/batch).
const MAX_IMPS = 40;
const MAX_PINS = 200;
const MAX_URL = 2048;
const MAX_BODY = 65_536;

/**
 * The body of a batch for these slots. Of too many pins those of these slots go along,
 * and the newest; of counts, as many of the latest as there is room for. All of it is ASCII.
 */
export const toBatch = (
  pub: string,
  href: string,
  imps: readonly Imp[],
  {pins, seen, recent}: Memory,
): string => {
  const counts = {...seen};
  const isHere = (pin: Pin) => imps.some(({id}) => id === pin.slotId);
  const toSend = [...pins].sort((a, b) => +isHere(b) - +isHere(a));
  for (;;) {
    const body = toJSON({
      pub,
      url: toURL(href),
      imp: imps.slice(0, MAX_IMPS).map(({id, w, h}) => ({id, w, h})),
      pins: toSend.slice(0, MAX_PINS).map(({slotId, creativeId}) => ({slotId, creativeId})),
      seen: counts,
      recent,
    });
    const oldest = Object.keys(counts).slice(0, 50);
    if (body.length < MAX_BODY || !oldest.length) return body;
    for (const id of oldest) delete counts[id];
  }
};

/** The page's address without its fragment, and without its query where it is too long. */
export const toURL = (href: string): string => {
  const url = href.split('#', 1)[0]!;
  return url.length <= MAX_URL ? url : url.split('?', 1)[0]!.slice(0, MAX_URL);
};
