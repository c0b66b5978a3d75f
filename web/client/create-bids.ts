import {getBids} from './get-bids.ts';
import type {Bid} from './page.ts';

export interface Bids {
  /** Takes over a value like `window.__ts_bids`; a slot's later bid replaces its earlier one. */
  receive(value: unknown): void;
  /** The slot's bid, if there is one that may still be used. */
  forSlot(slotId: string): Bid | undefined;
  /** The bid with this hb_adid, if there is one that may still be used. */
  forCreative(adId: string): Bid | undefined;
  /** The bid with this hb_adid, however old: what was requested in time is paid for. */
  forBilling(adId: string): Bid | undefined;
  /** Forgets every bid. */
  clear(): void;
}

/** The winners of this page view. Keys are strangers' strings, hence a Map. */
export const createBids = (now: () => number): Bids => {
  const bids = new Map<string, Bid>();
  const byAdId = (adId: string) => Array.from(bids.values()).find((bid) => bid.adId === adId);
  const fresh = (bid: Bid | undefined) => (bid && now() < bid.expiresAt ? bid : undefined);
  return {
    receive(value) {
      for (const bid of getBids(value, now())) bids.set(bid.slotId, bid);
    },
    forSlot: (slotId) => fresh(bids.get(slotId)),
    forCreative: (adId) => fresh(byAdId(adId)),
    forBilling: byAdId,
    clear: () => bids.clear(),
  };
};
