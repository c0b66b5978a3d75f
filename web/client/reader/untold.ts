import {isRecord} from '../is-record.ts';
import {changeRows, deleteRows, readRows, type Schema} from './transact.ts';

/** Everything that is not a pin. */
export const DECKLE: Schema = {
  name: 'deckle',
  stores: {seen: 'creativeId', recent: 'campaignId', untold: 'foldToken'},
};

/** A fold or an unfold that the server has not acknowledged yet. */
export interface Untold {
  readonly foldToken: string;
  /** Whose corner: the slot and the creative. */
  readonly of: string;
  readonly isFolded: boolean;
  /** The body of POST /v1/dogear-event. */
  readonly body: string;
  /** When its token will have become stale, by Date.now(). */
  readonly until: number;
}

/** What can still be told at `now`. What cannot is deleted. */
export const readUntold = async (win: Window, now: number): Promise<Untold[]> => {
  const untold = (await readRows(win, DECKLE, 'untold')).filter(isUntold);
  for (const {of, until} of untold) {
    if (until <= now) void deleteUntold(win, of);
  }
  return untold.filter(({until}) => until > now);
};

const isUntold = (row: unknown): row is Untold =>
  isRecord(row) &&
  typeof row.of === 'string' &&
  typeof row.body === 'string' &&
  typeof row.until === 'number';

/** Notes what is untold of a corner, in place of what was, whatever their tokens. */
export const writeUntold = (win: Window, change: Untold): Promise<unknown> =>
  changeRows(win, DECKLE, 'untold', (store) => {
    store.put(change);
    deleteRows(store, ({of, foldToken}) => of === change.of && foldToken !== change.foldToken);
  });

/** Deletes what is untold of a corner. */
export const deleteUntold = (win: Window, corner: string): Promise<unknown> =>
  changeRows(win, DECKLE, 'untold', (store) => deleteRows(store, ({of}) => of === corner));
