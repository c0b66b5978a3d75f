import {getTargeting} from './get-targeting.ts';
import {isInitialLoadDisabled} from './is-initial-load-disabled.ts';
import type {Bid, Slot, Targeting} from './page.ts';
import {safely} from './safely.ts';
import {setTargeting} from './set-targeting.ts';
import {withGPT} from './with-gpt.ts';

export interface AdServer {
  /** Requests ads for slots whose elements are in the document, each once, all in one request. */
  request(slots: readonly Slot[]): void;
  /**
   * Takes what we set away from these slots, or from every slot, except the
   * template's own targeting.
   */
  withdraw(slots?: readonly Slot[]): void;
  /** Requests new ads for slots that have been requested before, all in one request. */
  refresh(slots: readonly Slot[]): void;
  /** Gives up the slots that we have defined: their page is another one now. */
  leave(): void;
  /** The ids of the elements whose newest request carried this hb_adid. */
  holdersOf(adId: string): string[];
}

export interface AdServerOptions {
  /** The bid that the slot may still use. */
  bidFor(slotId: string): Bid | undefined;
  /** GPT has put an ad into a slot; adId is the hb_adid that its request carried, or ''. */
  onRender(adId: string): void;
}

/** What we have set on a slot for one request, and have to take away. */
interface Ours {
  readonly keys: Record<string, null>;
  /** That request is under way. */
  requested: boolean;
}

/** Google Ad Manager, reached through whichever of GPT's two interfaces the page has. */
export const createAdServer = (win: Window, {bidFor, onRender}: AdServerOptions): AdServer => {
  /** What hb_adid a slot's newest request carried; the key is there for every slot requested. */
  const carried = new Map<googletag.Slot, string>();
  const ours = new Map<googletag.Slot, Ours>();
  const made = new Set<googletag.Slot>();

  const clear = (slot: googletag.Slot) => {
    const set = ours.get(slot);
    if (set) setTargeting(slot, set.keys);
    ours.delete(slot);
  };

  withGPT(win, (gpt) => {
    const service = gpt.pubads();
    const onRequest = ({slot}: googletag.events.SlotRequestedEvent) => {
      carried.set(slot, getTargeting(slot, 'hb_adid'));
      const set = ours.get(slot);
      // The page refreshed the slot before it had rendered: no third request may carry this.
      if (set?.requested) clear(slot);
      else if (set) set.requested = true;
    };
    const onRenderEnd = ({slot, isEmpty}: googletag.events.SlotRenderEndedEvent) => {
      // Keys set while the page's own request was under way are for the next one.
      if (ours.get(slot)?.requested) clear(slot);
      if (!isEmpty) onRender(carried.get(slot) ?? '');
    };
    service.addEventListener('slotRequested', safely(onRequest));
    service.addEventListener('slotRenderEnded', safely(onRenderEnd));
  });

  const target = (gptSlot: googletag.Slot, slot: Slot, initial: Targeting) => {
    const bid = bidFor(slot.id);
    const hb: Targeting = Object.assign(initial, bid?.targeting);
    setTargeting(gptSlot, Object.assign({}, slot.targeting, hb));
    const set: Ours = {keys: {}, requested: false};
    for (const key of Object.keys(hb)) set.keys[key] = null;
    ours.set(gptSlot, set);
    if (!bid) return;
    const expire = safely(() => {
      if (ours.get(gptSlot) === set) clear(gptSlot);
    });
    // The page may request the slot late: it then goes without.
    setTimeout(expire, bid.expiresAt - Date.now());
  };

  const of = (gpt: typeof googletag, {divId}: Slot) =>
    gpt
      .pubads()
      .getSlots()
      .find((gptSlot) => gptSlot.getSlotElementId() === divId);

  return {
    request(slots) {
      withGPT(win, (gpt) => {
        const unrequested: googletag.Slot[] = [];
        for (const slot of slots) {
          const existing = of(gpt, slot);
          const gptSlot = existing ?? gpt.defineSlot(slot.gamUnitPath, slot.formats, slot.divId);
          if (!gptSlot) continue;
          if (!existing) {
            gptSlot.addService?.(gpt.pubads());
            made.add(gptSlot);
          }
          // What a request before our time carried is unknown; that it was answered is not.
          const requested = carried.has(gptSlot) || gptSlot.getResponseInformation?.();
          target(gptSlot, slot, {ts_initial: '1'});
          if (!requested) unrequested.push(gptSlot);
        }
        show(gpt, unrequested);
      });
    },
    withdraw(slots) {
      withGPT(win, (gpt) => {
        if (!slots) Array.from(ours.keys()).forEach(clear);
        for (const slot of slots ?? []) {
          const gptSlot = of(gpt, slot);
          if (gptSlot) clear(gptSlot);
        }
      });
    },
    refresh(slots) {
      withGPT(win, (gpt) => {
        const shown: googletag.Slot[] = [];
        for (const slot of slots) {
          const gptSlot = of(gpt, slot);
          if (!gptSlot) continue;
          target(gptSlot, slot, {});
          shown.push(gptSlot);
        }
        if (shown.length) gpt.pubads().refresh(shown);
      });
    },
    leave() {
      withGPT(win, (gpt) => {
        if (made.size) gpt.destroySlots(Array.from(made));
        for (const slot of Array.from(made)) carried.delete(slot);
        made.clear();
      });
    },
    holdersOf: (adId) =>
      Array.from(carried.entries())
        .filter(([, carriedId]) => carriedId === adId)
        .map(([slot]) => slot.getSlotElementId()),
  };
};

/**
 * Displays slots in a single request. display() fetches every slot that is
 * defined and has not been fetched, and does nothing for one that was displayed;
 * where the page has disabled initial load, refresh() does the fetching.
 */
const show = (gpt: typeof googletag, slots: googletag.Slot[]): void => {
  if (!slots.length) return;
  if (!gpt.pubadsReady) {
    if (typeof gpt.setConfig === 'function') gpt.setConfig({singleRequest: true});
    else gpt.pubads().enableSingleRequest();
  }
  gpt.enableServices();
  for (const slot of slots) gpt.display(slot.getSlotElementId());
  if (isInitialLoadDisabled(gpt)) gpt.pubads().refresh(slots);
};
