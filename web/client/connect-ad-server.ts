import {type AdServer, createAdServer} from './create-ad-server.ts';
import type {Bids} from './create-bids.ts';
import {createBilling} from './create-billing.ts';
import {createBridge} from './create-bridge.ts';
import {sendNotice} from './send-notice.ts';
import {takeBlock} from './take-block.ts';
import {watchDocument} from './watch-document.ts';

/** Joins the ad server with what its ads have to do with bids: markup and billing. */
export const connectAdServer = (
  win: Window,
  bids: Bids,
  count: (what: string) => void,
): AdServer => {
  const billing = createBilling((url) => {
    count('notice');
    sendNotice(url);
  });
  const adServer = createAdServer(win, {
    bidFor: bids.forSlot,
    onRender(adId) {
      const bid = bids.forBilling(adId);
      if (bid) billing.rendered(bid);
    },
  });
  const bridge = createBridge({
    bidFor: bids.forCreative,
    elementsFor: (adId) =>
      adServer
        .holdersOf(adId)
        .map((id) => win.document.getElementById(id))
        .filter((element): element is HTMLElement => element !== null),
    markup: getMarkup(win),
    onHanded: billing.handed,
    onReport: count,
  });
  win.addEventListener('message', bridge);
  return adServer;
};

/** The markup block, which stands at the end of the page; empty when there is none. */
const getMarkup = (win: Window): Promise<ReadonlyMap<string, unknown>> =>
  new Promise((resolve) => {
    watchDocument(win, 0, (last) => {
      const block = takeBlock(win.document, 'markup') ?? (last ? {} : undefined);
      // Strangers' ad ids are its keys, hence a Map.
      if (block) resolve(new Map(Object.entries(block)));
      return block !== undefined;
    });
  });
