import {type Bids, createBids} from './create-bids.ts';
import {type AdUnit, createSupply} from './create-supply.ts';
import type {Won} from './get-auction-bids.ts';
import {whenPermitted} from './when-permitted.ts';

/** The bids of a page view, wherever they come from, under the reader's permission. */
export interface Stock {
  readonly bids: Bids;
  /** Markup by hb_adid. */
  readonly markup: Map<string, unknown>;
  /** Takes over bids that the edge has written into the page. */
  receive(value: unknown): void;
  /**
   * Resolved when the slots may be displayed that the gate skipped for this reason,
   * and at once without one. True: bids may be asked for.
   */
  permit(skip: string): Promise<boolean>;
  /** Asks for the bids of the page where the window is. False: it has gone on. */
  obtain(): Promise<boolean>;
  /** Asks for bids for ad units. Resolved with the codes that have got one. */
  request(adUnits: readonly AdUnit[]): Promise<string[]>;
  /** Whether the reader's last word was no. */
  isRefused(): boolean;
  /** Hears what the reader has said, from a page whose CMP has no API that we know. */
  consent(yes: boolean): void;
  forget(): void;
}

export interface StockOptions {
  emit(name: string, detail: unknown): void;
  /** The bids may no longer be used. */
  onForget(): void;
}

export const createStock = (win: Window, {emit, onForget}: StockOptions): Stock => {
  const bids = createBids(Date.now);
  const markup = new Map<string, unknown>();
  const answers: ((yes: boolean) => void)[] = [];
  let refused = false;

  const forget = () => {
    bids.clear();
    win.__ts_bids = {};
    onForget();
  };
  const heard = (yes: boolean) => {
    refused = !yes;
    if (refused) forget();
  };
  const receive = (value: unknown) => {
    if (refused) return;
    bids.receive(value);
    emit('auctionEnd', {slots: Object.keys(value ?? {})});
  };
  const take = (won: Won) => {
    if (refused) return;
    win.__ts_bids = won.bids;
    for (const [adId, ad] of Object.entries(won.markup)) markup.set(adId, ad);
    receive(won.bids);
  };
  const permit = (skip: string) =>
    new Promise<boolean>((done) => {
      answers.push(whenPermitted(win, skip, {done, heard}));
    });
  const supply = createSupply(win, {mayAsk: () => !refused, take});
  return {
    bids,
    markup,
    receive,
    permit,
    request: supply.request,
    async obtain() {
      const skip = await supply.renew();
      // Of a page that was the same for everyone the edge says only now what it lacks.
      if (skip && (await permit(skip))) await supply.renew();
      return skip !== undefined;
    },
    isRefused: () => refused,
    consent(yes) {
      heard(yes);
      for (const answer of answers) answer(yes);
    },
    forget,
  };
};
