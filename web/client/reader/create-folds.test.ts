import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {createFolds} from './create-folds.ts';
import {readPins} from './pins.ts';
import {createStorage} from './storage-double.ts';
import type {Winner} from './types.ts';
import {readUntold} from './untold.ts';

const NOW = 1_790_000_000_000;
const MINUTE = 60_000;
/** Longer than a corner rests before it is told. */
const REST = {timeout: 3000};
const winner = {creativeId: 'ferry-1', foldToken: 'T1', honored: false} as Winner;
const bookmark = {...winner, foldToken: 'T2', honored: true};

/** A browser with storage, and a server that answers with one status after the other. */
const setUp = (...statuses: number[]) => {
  const storage = createStorage();
  const target = new EventTarget();
  const win = Object.assign(storage.win, {
    addEventListener: target.addEventListener.bind(target),
  });
  const told: {url: string; body: Record<string, unknown>; pins: number}[] = [];
  vi.stubGlobal('fetch', async (url: string, {body}: {body: string}) => {
    told.push({url, body: JSON.parse(body), pins: (await readPins(win, NOW)).length});
    const status = statuses.shift() ?? 204;
    if (status === 0) throw new TypeError('offline');
    return {status};
  });
  let now = NOW;
  const settings = {pub: 'site', base: 'https://d.example', skip: ''};
  return {
    ...storage,
    told,
    visit: () => createFolds(win, settings, () => now),
    later: (ms: number) => {
      now += ms;
    },
    online: () => target.dispatchEvent(new Event('online')),
    leave: () => target.dispatchEvent(new Event('pagehide')),
    untold: () => readUntold(win, now),
  };
};

beforeEach(() => {
  vi.useRealTimers();
});
afterEach(() => {
  vi.unstubAllGlobals();
});

test('the pin is written first, then the fold is told', async () => {
  const {visit, told, win, untold} = setUp();
  visit().fold('sidebar-1', {...winner, pinExpiresAt: NOW + MINUTE}, 2);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  expect(told).toEqual([
    {
      url: 'https://d.example/v1/dogear-event',
      pins: 1,
      body: {
        pub: 'site',
        url: 'https://site.example/a',
        creativeId: 'ferry-1',
        slotId: 'sidebar-1',
        event: 'fold',
        foldToken: 'T1',
        page: 2,
      },
    },
  ]);
  expect(await readPins(win, NOW)).toEqual([
    {
      slotId: 'sidebar-1',
      creativeId: 'ferry-1',
      page: 2,
      foldedAt: NOW,
      expiresAt: NOW + MINUTE,
    },
  ]);
  await vi.waitFor(async () => expect(await untold()).toEqual([]));
});

test.each([0, 429, 503])('after %d it is told on the next visit, once', async (status) => {
  const {visit, told, untold, later} = setUp(status);
  visit().fold('s', winner, 0);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  later(29 * MINUTE);
  const next = visit();
  next.tellUntold();
  await vi.waitFor(() => expect(told).toHaveLength(2));
  expect(told[1]?.body).toEqual(told[0]?.body);
  await vi.waitFor(async () => expect(await untold()).toEqual([]));
  next.tellUntold();
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(told).toHaveLength(2);
});

test.each([400, 403, 404, 413])('%d is the last word', async (status) => {
  const {visit, told, untold} = setUp(status);
  visit().fold('s', winner, 0);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  await vi.waitFor(async () => expect(await untold()).toEqual([]));
});

test('a stale token is not told any more', async () => {
  const {visit, told, later, rows} = setUp(0);
  visit().fold('s', winner, 0);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  later(30 * MINUTE);
  visit().tellUntold();
  await vi.waitFor(async () => expect(await rows('deckle', 'untold')).toEqual([]));
  expect(told).toHaveLength(1);
});

test('it is told as soon as the connection is back', async () => {
  const {visit, told, online} = setUp(0);
  visit().fold('s', winner, 0);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  online();
  await vi.waitFor(() => expect(told).toHaveLength(2), {timeout: 500});
});

test('an unfold takes the pin away and is told after its fold', async () => {
  const {visit, told, win, untold} = setUp();
  const folds = visit();
  folds.fold('s', winner, 1);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  folds.unfold('s', winner);
  await vi.waitFor(
    () => expect(told.map(({body}) => body.event)).toEqual(['fold', 'unfold']),
    REST,
  );
  expect(await readPins(win, NOW)).toEqual([]);
  await vi.waitFor(async () => expect(await untold()).toEqual([]));
});

test('what the reader has thought better of is not told', async () => {
  const {visit, told, win, untold} = setUp();
  const folds = visit();
  folds.fold('s', winner, 1);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  folds.unfold('s', winner);
  folds.fold('s', winner, 1);
  folds.fold('other', winner, 2);
  await vi.waitFor(() => expect(told).toHaveLength(2), REST);
  expect(told[1]?.body).toMatchObject({event: 'fold', slotId: 'other'});
  expect(await readPins(win, NOW)).toHaveLength(2);
  await vi.waitFor(async () => expect(await untold()).toEqual([]));
});

test('a page that is left tells at once', async () => {
  const {visit, told, leave} = setUp();
  const folds = visit();
  folds.fold('s', winner, 1);
  leave();
  await vi.waitFor(() => expect(told).toHaveLength(1), {timeout: 200});
});

test('an unfold that was not heard is told on the next visit', async () => {
  const {visit, told, untold} = setUp(0);
  visit().unfold('s', bookmark);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  visit().tellUntold();
  await vi.waitFor(() => expect(told).toHaveLength(2));
  expect(told[1]?.body).toMatchObject({event: 'unfold', foldToken: 'T2'});
  await vi.waitFor(async () => expect(await untold()).toEqual([]));
});

test('a fold that nobody has heard of needs no unfold', async () => {
  const {visit, told, win, untold} = setUp(0);
  const folds = visit();
  folds.fold('s', winner, 1);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  folds.unfold('s', winner);
  await vi.waitFor(async () => expect(await readPins(win, NOW)).toEqual([]));
  await vi.waitFor(async () => expect(await untold()).toEqual([]), REST);
  expect(told.map(({body}) => body.event)).toEqual(['fold']);
});

test('a fold of an earlier visit does not outlive its unfold', async () => {
  const {visit, told, untold} = setUp(0, 0);
  visit().fold('s', winner, 1);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  const next = visit();
  next.tellUntold();
  await vi.waitFor(() => expect(told).toHaveLength(2));
  next.unfold('s', bookmark);
  await vi.waitFor(async () => expect(await untold()).toEqual([]), REST);
  visit().tellUntold();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(told.map(({body}) => body.event)).toEqual(['fold', 'fold']);
});

test('an unfold leaves what another tab has folded in the slot', async () => {
  const {visit, told, win} = setUp();
  const folds = visit();
  folds.fold('s', {...winner, creativeId: 'other', foldToken: 'T2'}, 1);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
  folds.unfold('s', bookmark);
  await vi.waitFor(() => expect(told).toHaveLength(2), REST);
  expect((await readPins(win, NOW)).map(({creativeId}) => creativeId)).toEqual(['other']);
});

test('an unfold does not wait for the network', async () => {
  const {visit, told, win} = setUp();
  vi.stubGlobal('fetch', () => new Promise(() => {}));
  const folds = visit();
  folds.fold('s', winner, 1);
  await vi.waitFor(async () => expect(await readPins(win, NOW)).toHaveLength(1));
  folds.unfold('s', winner);
  await vi.waitFor(async () => expect(await readPins(win, NOW)).toEqual([]));
  expect(told).toEqual([]);
});

test('a fold that the campaign does not want to hear of stays here', async () => {
  const {visit, told, win} = setUp();
  visit().fold('s', {...winner, foldToken: ''}, 1);
  await vi.waitFor(async () => expect(await readPins(win, NOW)).toHaveLength(1));
  await new Promise((resolve) => setTimeout(resolve, 1100));
  expect(told).toEqual([]);
});

test('without storage a fold is told all the same', async () => {
  const {win, visit, told} = setUp();
  Object.assign(win, {indexedDB: null});
  visit().fold('s', winner, 0);
  await vi.waitFor(() => expect(told).toHaveLength(1), REST);
});
