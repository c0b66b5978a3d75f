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
 * Keeps and tells folds, one after the other. The pin is written first: it is the
 * reader's, whatever becomes of the rest. A fold is noted as untold before it is
 * told, so that it outlives a tab that is closed meanwhile; a fold that is told
 * twice counts once.
 */
export const createFolds = (win: Window, {pub, base}: ReaderSettings, now: () => number): Folds => {
  const url = `${base}/v1/dogear-event`;
  // Not told, although storage may have lost or never had it.
  const untold = new Set<string>();
  let last: Promise<unknown> = Promise.resolve();
  const next = (step: () => Promise<unknown>) => {
    last = last.then(step).catch(() => {});
  };

  const tell = async ({foldToken, body}: Untold) => {
    if (!isFinal(await request(url, body))) return;
    untold.delete(foldToken);
    await deleteUntold(win, foldToken);
  };
  const tellUntold = () => {
    next(async () => {
      for (const fold of await readUntold(win, now())) await tell(fold);
    });
  };
  win.addEventListener('online', tellUntold);

  return {
    fold(slotId, {creativeId, foldToken, pinExpiresAt}, page) {
      next(async () => {
        const foldedAt = now();
        const expires = expiresAt(foldedAt, pinExpiresAt);
        await writePin(win, {slotId, creativeId, page, foldedAt, expiresAt: expires});
        if (!foldToken) return; // the campaign wants to hear of no folds
        const about = {pub, url: toURL(win.location.href), creativeId, slotId};
        const body = toJSON({...about, event: 'fold', foldToken, page});
        const fold = {foldToken, body, until: foldedAt + FOLD_WINDOW_MS};
        untold.add(foldToken);
        await writeUntold(win, fold);
        await tell(fold);
      });
    },
    unfold(slotId, {creativeId, foldToken}) {
      next(async () => {
        await deletePins(win, (pin) => pin.slotId === slotId && pin.creativeId === creativeId);
        // What was never told needs no taking back.
        if (untold.delete(foldToken)) return deleteUntold(win, foldToken);
        const about = {pub, url: toURL(win.location.href), creativeId, slotId};
        return request(url, toJSON({...about, event: 'unfold', foldToken}));
      });
    },
    tellUntold,
  };
};
