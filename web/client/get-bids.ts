import {isRecord} from './is-record.ts';
import type {Bid} from './page.ts';

/** deckle.MaxBidAge: no bid is used later than this, whatever its exp says. */
const MAX_AGE_MS = 300_000;

/**
 * The winners of a value like `window.__ts_bids`, received at `now`
 * (Date.now()). An entry without an hb_adid is left out; of the others, only
 * strings under `hb_*` become targeting, and only http(s) URLs become notices.
 */
export const getBids = (value: unknown, now: number): Bid[] =>
  isRecord(value)
    ? Object.entries(value)
        .map(([slotId, entry]) => getBid(slotId, entry, now))
        .filter((bid): bid is Bid => bid !== undefined)
    : [];

const getBid = (slotId: string, entry: unknown, now: number): Bid | undefined => {
  if (!isRecord(entry) || typeof entry.hb_adid !== 'string' || !entry.hb_adid) return undefined;
  const targeting: Record<string, string> = {};
  for (const [key, value] of Object.entries(entry)) {
    if (/^hb_\w+$/.test(key) && typeof value === 'string') targeting[key] = value;
  }
  const exp = typeof entry.exp === 'number' && entry.exp > 0 ? entry.exp * 1000 : MAX_AGE_MS;
  return {
    slotId,
    adId: entry.hb_adid,
    targeting,
    w: getLength(entry.w),
    h: getLength(entry.h),
    notices: [entry.burl, entry.nurl].filter(isWebURL),
    burlOn: entry.burl_on === 'render' ? 'render' : 'creative',
    expiresAt: now + Math.min(exp, MAX_AGE_MS),
  };
};

const getLength = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : 0);

/** Rules out javascript:, data: and whatever else could do more than be fetched. */
const isWebURL = (value: unknown): value is string =>
  typeof value === 'string' && /^https?:\/\//i.test(value);
