import {findFrame} from './find-frame.ts';
import type {Bid} from './page.ts';
import {parseMessage} from './parse-message.ts';
import {safely} from './safely.ts';
import {sizeFrame} from './size-frame.ts';

export interface BridgeOptions {
  /** The bid that may still be shown. */
  bidFor(adId: string): Bid | undefined;
  /** The elements of the slots that hold this ad id. */
  elementsFor(adId: string): Element[];
  /** Markup by hb_adid. It comes at the end of the page, after the first creatives. */
  readonly markup: Promise<ReadonlyMap<string, unknown>>;
  /** The bid's markup has gone to its creative. */
  onHanded(bid: Bid): void;
  /** A creative inside a slot reports what became of it. */
  onReport(event: string): void;
}

/**
 * The render bridge: gives Prebid Universal Creative the markup of the bid that
 * its line item stands for. A creative that runs elsewhere on the page, or in
 * another slot, gets nothing; nor does anyone who asks twice.
 */
export const createBridge = (options: BridgeOptions): ((event: MessageEvent) => void) => {
  const handed = new Set<string>();

  const find = ({source}: MessageEvent, adId: string) => {
    for (const element of options.elementsFor(adId)) {
      const frame = findFrame(source, element);
      if (frame) return {element, frame};
    }
    return undefined;
  };

  const answer = (event: MessageEvent, adId: string, ad: unknown) => {
    const bid = options.bidFor(adId);
    const port = event.ports[0];
    const place = find(event, adId);
    if (!bid || !port || !place || typeof ad !== 'string' || handed.has(adId)) return;
    handed.add(adId);
    const {w: width, h: height} = bid;
    port.postMessage(JSON.stringify({message: 'Prebid Response', adId, ad, width, height}));
    options.onHanded(bid);
    sizeFrame(place.frame, place.element, width, height);
  };

  return safely((event) => {
    const message = parseMessage(event.data);
    if (!message || !find(event, message.adId)) return;
    const {adId} = message;
    if (message.event) options.onReport(message.event);
    else {
      // By then the slot may hold another ad, or the bid may be too old: answer asks again.
      options.markup.then((markup) => answer(event, adId, markup.get(adId))).catch(() => {});
    }
  });
};
