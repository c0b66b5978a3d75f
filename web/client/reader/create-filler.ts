import {ask} from './ask.ts';
import type {Heart} from './create-heart.ts';
import {findPlaces} from './find-places.ts';
import {loadElement} from './load-element.ts';
import {deletePins} from './pins.ts';
import {reserve} from './reserve.ts';
import {type Shown, show} from './show.ts';
import {toBatch} from './to-batch.ts';
import type {Answer, Memory, PageSlot, Pin, ReaderSettings} from './types.ts';

/** Fills slots that were not filled before. Rejects where the page has broken the language. */
export type Fill = (slots: readonly PageSlot[], memory: Promise<Memory>) => Promise<void>;

/**
 * Fills slots with the magazines of a batch: one request with every pin of this
 * browser; pins that are gone are deleted before anything is shown; each magazine
 * goes into its slot as soon as that is in the page. Where the server does not
 * know the page yet, it is asked once more when it says so.
 */
export const createFiller = (
  win: Window,
  {pub, base}: ReaderSettings,
  heart: Heart,
  shown: Shown,
): Fill => {
  const asked = new Set<string>();
  let mayRetry = true;

  const getAnswer = async (slots: readonly PageSlot[], memory: Memory) => {
    try {
      return await ask(base, toBatch(pub, win.location.href, slots, memory));
    } catch (error) {
      const {message} = error as Error;
      heart('serve', /^[a-z_\d]+$/.test(message) ? message : 'network');
      return undefined;
    }
  };

  const fillRound = async (slots: readonly PageSlot[], known: Promise<Memory>): Promise<void> => {
    const release = new Map<string, () => void>();
    const places = findPlaces(win, slots, ({id, h}, place) => {
      release.set(id, reserve(win, place, h));
    });
    const memory = await known;
    const answer = await getAnswer(slots, memory);
    const pins = answer ? await deleteGone(win, memory.pins, answer) : memory.pins;
    const isDefined = answer?.winners.size ? await defineElement() : false;

    for (const slot of slots) {
      void places
        .get(slot.id)
        ?.then((place) => {
          const winner = answer?.winners.get(slot.id);
          if (!place) heart('slot', 'missing');
          else if (winner && isDefined) {
            const page = pins.find(({slotId}) => slotId === slot.id)?.page ?? 0;
            show(win, {slot, place, winner, page}, shown);
          } else release.get(slot.id)?.();
        })
        .catch(() => {
          heart('render', 'exception');
          release.get(slot.id)?.();
        });
    }
    if (answer?.retryInMs && mayRetry) {
      mayRetry = false;
      const empty = slots.filter(({id}) => !answer.winners.has(id));
      if (empty.length) {
        await new Promise((resolve) => setTimeout(resolve, answer.retryInMs));
        await fillRound(empty, Promise.resolve({...memory, pins}));
      }
    }
  };

  const defineElement = async (): Promise<boolean> => {
    try {
      await loadElement(base);
    } catch {
      heart('render', 'module'); // the page's policy, say
    }
    return win.customElements.get('deckle-magazine') !== undefined;
  };

  return async (slots, memory) => {
    const fresh = slots.filter(({id}) => !asked.has(id) && asked.add(id));
    if (fresh.length) await fillRound(fresh, memory);
  };
};

/** Deletes the pins that the server knows to be gone, and gives those that stay. */
const deleteGone = async (
  win: Window,
  pins: readonly Pin[],
  {removed, stale}: Answer,
): Promise<Pin[]> => {
  const isGone = (pin: Pin) => removed.includes(pin.slotId) || stale.includes(pin.creativeId);
  const gone = pins.filter(isGone);
  if (gone.length) {
    await deletePins(win, ({slotId, creativeId}) =>
      gone.some((pin) => pin.slotId === slotId && pin.creativeId === creativeId),
    );
  }
  return pins.filter((pin) => !isGone(pin));
};
