import {isRecord} from '../is-record.ts';
import {type Schema, transact} from './transact.ts';

/** Everything that is not a pin. */
export const DECKLE: Schema = {
  name: 'deckle',
  stores: {seen: 'creativeId', recent: 'campaignId', untold: 'foldToken'},
};

/** A fold that the server has not acknowledged yet. */
export interface Untold {
  readonly foldToken: string;
  /** The body of POST /v1/dogear-event. */
  readonly body: string;
  /** When its token will have become stale, by Date.now(). */
  readonly until: number;
}

/** The folds that can still be told at `now`. Those that cannot are deleted. */
export const readUntold = async (win: Window, now: number): Promise<Untold[]> => {
  const rows =
    (await transact(win, DECKLE, 'readonly', (transaction) => {
      const all = transaction.objectStore('untold').getAll();
      return () => all.result as unknown[];
    })) ?? [];
  const untold = rows.filter(isUntold);
  for (const {foldToken, until} of untold) {
    if (until <= now) void deleteUntold(win, foldToken);
  }
  return untold.filter(({until}) => until > now);
};

const isUntold = (row: unknown): row is Untold =>
  isRecord(row) &&
  typeof row.foldToken === 'string' &&
  typeof row.body === 'string' &&
  typeof row.until === 'number';

export const writeUntold = (win: Window, fold: Untold): Promise<unknown> =>
  transact(win, DECKLE, 'readwrite', (transaction) => {
    transaction.objectStore('untold').put(fold);
    return () => true;
  });

export const deleteUntold = (win: Window, foldToken: string): Promise<unknown> =>
  transact(win, DECKLE, 'readwrite', (transaction) => {
    transaction.objectStore('untold').delete(foldToken);
    return () => true;
  });
