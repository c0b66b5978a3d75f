import {expiresAt} from './expires-at.ts';
import {deletePins, writePin} from './pins.ts';
import {isFinal, request} from './request.ts';
import {toURL} from './to-batch.ts';
import {toJSON} from './to-json.ts';
import type {ReaderSettings, Winner} from './types.ts';
import {deleteUntold, readUntold, type Untold, writeUntold} from './untold.ts';

/** `fold_window` of the server: how long a fold token can be told. */
const FOLD_WINDOW_MS = 30 * 60_000;

/** A corner that has been left alone for that long stays as it is, for now. */
const REST_MS = 1000;

export interface Folds {
  /** The reader has folded the corner of `page`. */
  fold(slotId: string, winner: Winner, page: number): void;
  /** The reader has straightened it. */
  unfold(slotId: string, winner: Winner): void;
  /** Tells what earlier visits could not. */
  tellUntold(): void;
}

/**
 * Keeps folds and tells of them. What is kept is the reader's: it waits for no
 * network. What is told is how a corner is after a second of rest, or when the page
 * is left, where the server has last heard otherwise: a token counts one fold, so
 * one that is taken back and told again would be lost. It is noted as untold until
 * it has been heard, and so outlives a tab that is closed meanwhile.
 */
export const createFolds = (win: Window, {pub, base}: ReaderSettings, now: () => number): Folds => {
  const url = `${base}/v1/dogear-event`;
  // By corner: how it is for the server, and what it has yet to hear.
  const heard = new Map<string, boolean>();
  const untold = new Map<string, Untold>();
  const keep = createQueue();
  const tell = createQueue();
  let timer: ReturnType<typeof setTimeout> | undefined;

  const tellOne = async (change: Untold) => {
    const {of, isFolded, body} = change;
    if (heard.get(of) !== isFolded) {
      if (!isFinal(await request(url, body))) return;
      heard.set(of, isFolded);
    }
    if (untold.get(of) !== change) return; // changed meanwhile
    untold.delete(of);
    await keep(() => deleteUntold(win, of));
  };
  const tellAll = () => Promise.all(Array.from(untold.values(), tellOne));
  const tellUntold = () => {
    void tell(async () => {
      for (const change of await readUntold(win, now())) {
        if (!untold.has(change.of)) untold.set(change.of, change);
      }
      await tellAll();
    });
  };
  win.addEventListener('online', tellUntold);
  win.addEventListener('pagehide', () => void tellAll());

  /** Notes how a corner is; `page` is undefined where it is straight. */
  const note = (slotId: string, winner: Winner, page?: number) => {
    const {creativeId, foldToken, honored} = winner;
    const of = `${slotId} ${creativeId}`;
    const isFolded = page !== undefined;
    const before = untold.get(of);
    if (!heard.has(of)) heard.set(of, before ? !before.isFolded : honored);
    if (isFolded && !foldToken) heard.set(of, true); // the campaign wants to hear of no folds
    const about = {pub, url: toURL(win.location.href), creativeId, slotId};
    const body = toJSON({...about, event: isFolded ? 'fold' : 'unfold', foldToken, page});
    const change = {foldToken, of, isFolded, body, until: now() + FOLD_WINDOW_MS};
    untold.set(of, change);
    void keep(() => writeUntold(win, change));
    clearTimeout(timer);
    timer = setTimeout(tellUntold, REST_MS);
  };

  return {
    fold(slotId, winner, page) {
      const {creativeId, pinExpiresAt} = winner;
      const foldedAt = now();
      const pin = {slotId, creativeId, page, foldedAt};
      void keep(() => writePin(win, {...pin, expiresAt: expiresAt(foldedAt, pinExpiresAt)}));
      note(slotId, winner, page);
    },
    unfold(slotId, winner) {
      void keep(() =>
        deletePins(win, (pin) => pin.slotId === slotId && pin.creativeId === winner.creativeId),
      );
      note(slotId, winner);
    },
    tellUntold,
  };
};

/** What takes steps one after the other; its promise is that of the step. */
const createQueue = () => {
  let last: Promise<unknown> = Promise.resolve();
  return (step: () => Promise<unknown>): Promise<unknown> => {
    last = last.then(step).catch(() => {});
    return last;
  };
};
