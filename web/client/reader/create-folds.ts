import {expiresAt} from './expires-at.ts';
import {deletePins, writePin} from './pins.ts';
import {isFinal, request} from './request.ts';
import {toURL} from './to-batch.ts';
import {toJSON} from './to-json.ts';
import type {ReaderSettings, Winner} from './types.ts';
import {deleteUntold, readUntold, type Untold, writeUntold} from './untold.ts';

/** `fold_window` of the server: how long a fold token can be told. */
const FOLD_WINDOW_MS = 30 * 60_000;

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
 * network. A fold is told after its pin has been written, and is noted as untold
 * until it has been heard, so that it outlives a tab that is closed meanwhile; one
 * that is told twice counts once. Each is told after what came before it.
 */
export const createFolds = (win: Window, {pub, base}: ReaderSettings, now: () => number): Folds => {
  const url = `${base}/v1/dogear-event`;
  // Also of those that storage did not take.
  const untold = new Set<string>();
  const keep = createQueue();
  const tell = createQueue();

  const tellFold = async ({foldToken, body}: Untold) => {
    if (!isFinal(await request(url, body))) return;
    untold.delete(foldToken);
    await deleteUntold(win, foldToken);
  };
  const tellUntold = () => {
    void tell(async () => {
      for (const fold of await readUntold(win, now())) await tellFold(fold);
    });
  };
  win.addEventListener('online', tellUntold);

  return {
    fold(slotId, {creativeId, foldToken, pinExpiresAt}, page) {
      const foldedAt = now();
      const pin = {slotId, creativeId, page, foldedAt};
      const about = {pub, url: toURL(win.location.href), creativeId, slotId};
      const body = toJSON({...about, event: 'fold', foldToken, page});
      const fold = {foldToken, body, until: foldedAt + FOLD_WINDOW_MS};
      const kept = keep(async () => {
        await writePin(win, {...pin, expiresAt: expiresAt(foldedAt, pinExpiresAt)});
        if (!foldToken) return; // the campaign wants to hear of no folds
        untold.add(foldToken);
        await writeUntold(win, fold);
      });
      if (foldToken) void tell(() => kept.then(() => tellFold(fold)));
    },
    unfold(slotId, {creativeId, foldToken}) {
      const kept = keep(() =>
        deletePins(win, (pin) => pin.slotId === slotId && pin.creativeId === creativeId),
      );
      void tell(async () => {
        await kept;
        // What nobody has heard of needs no taking back.
        if (untold.delete(foldToken)) return deleteUntold(win, foldToken);
        const about = {pub, url: toURL(win.location.href), creativeId, slotId};
        return request(url, toJSON({...about, event: 'unfold', foldToken}));
      });
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
