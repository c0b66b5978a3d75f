import {isRecord} from './is-record.ts';

/** Winners and their markup, in the form of hole 2 and of the markup block. */
export interface Won {
  readonly bids: Record<string, Record<string, unknown>>;
  readonly markup: Record<string, unknown>;
}

/** The winners in an answer of POST /auction, which is an OpenRTB bid response. */
export const getAuctionBids = (response: Record<string, unknown> | undefined): Won => {
  const won: Won = {bids: {}, markup: {}};
  for (const seat of list(response?.seatbid)) {
    for (const {impid, adm, w, h, exp, burl, nurl, ext} of list(seat.bid)) {
      const targeting = isRecord(ext) && isRecord(ext.targeting) ? ext.targeting : {};
      if (typeof impid !== 'string' || typeof targeting.hb_adid !== 'string') continue;
      won.bids[impid] = Object.assign({}, targeting, {w, h, exp, burl, nurl});
      won.markup[targeting.hb_adid] = adm;
    }
  }
  return won;
};

const list = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];
