import {askEdge} from './ask-edge.ts';
import {getAuctionBids, type Won} from './get-auction-bids.ts';
import {isRecord} from './is-record.ts';

/** An ad unit, as Prebid.js declares one. */
export interface AdUnit {
  readonly code: string;
  readonly mediaTypes?: {readonly banner?: {readonly sizes: readonly (readonly number[])[]}};
}

export interface Supply {
  /**
   * Asks for slots and bids of the page where the window is, and gives up what was
   * asked for before. Resolved with the gate's reason where it has skipped, with ''
   * where it has not, and with undefined where the page has gone on meanwhile.
   */
  renew(): Promise<string | undefined>;
  /** Asks for bids for ad units. Resolved with the codes that have got one. */
  request(adUnits: readonly AdUnit[]): Promise<string[]>;
}

export interface SupplyOptions {
  /** Whether the reader lets us ask, and use what comes. */
  mayAsk(): boolean;
  /** Bids have come. */
  take(won: Won): void;
}

/** Bids beyond those that the edge has written into the page. */
export const createSupply = (win: Window, {mayAsk, take}: SupplyOptions): Supply => {
  let latest = new AbortController();
  return {
    async renew() {
      latest.abort();
      const mine = new AbortController();
      latest = mine;
      const path = `/__ts/page-bids?path=${encodeURIComponent(win.location.pathname)}`;
      const answer = mayAsk() ? await askEdge(path, undefined, mine) : undefined;
      if (latest !== mine) return undefined;
      if (!answer) return '';
      const {slots, bids, markup, skip} = answer;
      if (Array.isArray(slots)) win.__ts_ad_slots = slots;
      if (isRecord(bids) && isRecord(markup)) take({bids: bids as Won['bids'], markup});
      return typeof skip === 'string' ? skip : '';
    },
    async request(adUnits) {
      const answer = mayAsk() ? await askEdge('/auction', JSON.stringify({adUnits})) : undefined;
      if (!mayAsk()) return [];
      const won = getAuctionBids(answer);
      take(won);
      return Object.keys(won.bids);
    },
  };
};
