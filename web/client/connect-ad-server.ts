import {type AdServer, createAdServer} from './create-ad-server.ts';
import {createBilling} from './create-billing.ts';
import {createBridge} from './create-bridge.ts';
import type {Stock} from './create-stock.ts';
import type {Slot} from './page.ts';
import {sendNotice} from './send-notice.ts';
import {showOwnAd} from './show-own-ad.ts';
import {takeBlock} from './take-block.ts';
import {watchDocument} from './watch-document.ts';

export interface ConnectOptions {
  /** How often something has happened. */
  readonly counts: Record<string, number>;
  emit(name: string, detail: unknown): void;
}

/** Joins the ad server with what its ads have to do with bids: markup and billing. */
export const connectAdServer = (
  win: Window,
  {bids, markup}: Pick<Stock, 'bids' | 'markup'>,
  {counts, emit}: ConnectOptions,
): AdServer => {
  const count = (what: string) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
  const billing = createBilling(
    (url) => {
      count('notice');
      sendNotice(url);
    },
    ({slotId, adId, targeting}) => emit('bidWon', {slotId, adId, targeting}),
  );
  const markupOf = getMarkup(win, markup);
  const onRender = (adId: string) => {
    emit('adRendered', {adId});
    const bid = bids.forBilling(adId);
    if (bid) billing.rendered(bid);
  };
  const adServer = createAdServer(win, {bidFor: bids.forSlot, onRender});
  const bridge = createBridge({
    bidFor: bids.forCreative,
    elementsFor: (adId) =>
      adServer
        .holdersOf(adId)
        .map((id) => win.document.getElementById(id))
        .filter((element): element is HTMLElement => element !== null),
    markup: markupOf,
    onHanded: billing.handed,
    onReport: count,
  });
  win.addEventListener('message', bridge);

  const showOwn = ({id, divId}: Slot) => {
    const bid = bids.forSlot(id);
    const element = win.document.getElementById(divId);
    if (!bid || !element) return;
    const shown = () => {
      billing.handed(bid);
      onRender(bid.adId);
    };
    markupOf
      .then(() => {
        const ad = markup.get(bid.adId);
        if (typeof ad !== 'string') return;
        showOwnAd(win, element, {bid, markup: ad, shown, forbidden: () => count('csp')});
      })
      .catch(() => {});
  };
  return Object.assign({}, adServer, {
    request(slots: readonly Slot[]) {
      adServer.request(slots.filter(({own}) => !own));
      slots.filter(({own}) => own).forEach(showOwn);
    },
  });
};

/** The markup, once the block at the end of the page is in it, where there is one. */
const getMarkup = (
  win: Window,
  markup: Map<string, unknown>,
): Promise<ReadonlyMap<string, unknown>> =>
  new Promise((resolve) => {
    watchDocument(win, 0, (last) => {
      const block = takeBlock(win.document, 'markup') ?? (last ? {} : undefined);
      if (!block) return false;
      for (const [adId, ad] of Object.entries(block)) markup.set(adId, ad);
      resolve(markup);
      return true;
    });
  });
