import {isRecord} from '../is-record.ts';
import {isId} from './read-pin.ts';
import {deleteRows, transact} from './transact.ts';
import type {Seen} from './types.ts';
import {DECKLE} from './untold.ts';

// Counts and recents. They are kept and read only with the reader's permission:
// the callers ask purpose1.ts.

const RECENT_MS = 15_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** More than any frequency cap asks for. */
const MAX_TIMES = 100;
/** What a batch may carry. */
const MAX_CREATIVES = 500;
const MAX_RECENT = 40;

/**
 * What this browser has seen, as the batch says it, the latest last; empty where
 * nothing is kept.
 */
export interface Visits {
  readonly seen: Record<string, Seen>;
  readonly recent: string[];
}

/** The counts and recents as of `now`. */
export const readVisits = async (win: Window, now: number): Promise<Visits> => {
  const rows = await transact(win, DECKLE, 'readonly', (transaction) => {
    const seen = transaction.objectStore('seen').getAll();
    const recent = transaction.objectStore('recent').getAll();
    return () => ({seen: seen.result as unknown[], recent: recent.result as unknown[]});
  });
  return {
    seen: countSeen(rows?.seen ?? [], now),
    recent: (rows?.recent ?? [])
      .filter(isRecord)
      .filter((row) => isRecent(row, now))
      .sort((a, b) => (a.at as number) - (b.at as number))
      .map(({campaignId}) => campaignId)
      .filter(isId)
      .slice(-MAX_RECENT),
  };
};

const isRecent = ({at}: Record<string, unknown>, now: number): boolean =>
  typeof at === 'number' && at <= now && at > now - RECENT_MS;

const countSeen = (rows: unknown[], now: number): Record<string, Seen> => {
  const counts: [string, Seen, last: number][] = [];
  for (const row of rows) {
    if (!isRecord(row) || !isId(row.creativeId)) continue;
    const times = readTimes(row.times, now);
    const within = (ms: number) => times.filter((at) => at > now - ms).length;
    if (times.length) {
      const seen = {h: within(HOUR_MS), d: within(DAY_MS), w: times.length};
      counts.push([row.creativeId, seen, Math.max(...times)]);
    }
  }
  const seen: Record<string, Seen> = Object.create(null);
  counts.sort((a, b) => a[2] - b[2]);
  for (const [id, count] of counts.slice(-MAX_CREATIVES)) seen[id] = count;
  return seen;
};

/** The times of a row that lie in the last week. */
const readTimes = (value: unknown, now: number): number[] =>
  Array.isArray(value)
    ? value.filter((at) => typeof at === 'number' && at <= now && at > now - WEEK_MS)
    : [];

/**
 * Remembers that a campaign's creative was shown. A bookmark counts as recent
 * only: the reader has asked for it, and a frequency cap is not about that.
 */
export const rememberVisit = (
  win: Window,
  {creativeId, campaignId, honored}: {creativeId: string; campaignId: string; honored: boolean},
  now: number,
): Promise<unknown> =>
  transact(win, DECKLE, 'readwrite', (transaction) => {
    const recent = transaction.objectStore('recent');
    deleteRows(recent, (row) => !isRecent(row, now));
    recent.put({campaignId, at: now});
    if (!honored) addTime(transaction.objectStore('seen'), creativeId, now);
    return () => true;
  });

const addTime = (store: IDBObjectStore, creativeId: string, now: number): void => {
  deleteRows(store, ({times}) => !readTimes(times, now).length);
  const own = store.get(creativeId);
  own.onsuccess = () => {
    const times = readTimes((own.result as Record<string, unknown> | undefined)?.times, now);
    store.put({creativeId, times: [...times, now].slice(-MAX_TIMES)});
  };
};

/** Forgets counts and recents: the reader has refused. */
export const forgetVisits = (win: Window): Promise<unknown> =>
  transact(win, DECKLE, 'readwrite', (transaction) => {
    transaction.objectStore('seen').clear();
    transaction.objectStore('recent').clear();
    return () => true;
  });
