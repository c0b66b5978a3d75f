import type {Bid} from './page.ts';

export interface Billing {
  /** GPT has rendered a request that carried this bid's hb_adid, and it was not empty. */
  rendered(bid: Bid): void;
  /** The bridge has handed this bid's markup to a creative inside the bid's slot. */
  handed(bid: Bid): void;
}

/**
 * Fires a bid's notices exactly once, when it has won.
 *
 * That GPT rendered a request with our hb_adid does not say so: the request of a
 * house ad that beat the bid carried it as well. Only the creative of the bid's
 * own line item comes to ask for the markup. The two come in either order.
 */
export const createBilling = (fire: (url: string) => void, onWon: (bid: Bid) => void): Billing => {
  const seen = {rendered: new Set<string>(), handed: new Set<string>()};
  const billed = new Set<string>();
  const observe = (fact: 'rendered' | 'handed', bid: Bid) => {
    seen[fact].add(bid.adId);
    const won =
      seen.rendered.has(bid.adId) && (bid.burlOn === 'render' || seen.handed.has(bid.adId));
    if (!won || billed.has(bid.adId)) return;
    billed.add(bid.adId);
    bid.notices.forEach(fire);
    onWon(bid);
  };
  return {
    rendered: (bid) => observe('rendered', bid),
    handed: (bid) => observe('handed', bid),
  };
};
