import {afterEach, describe, expect, test, vi} from 'vitest';
import {expiresAt} from './expires-at.ts';
import {deletePins, readPins, writePin} from './pins.ts';
import {createStorage, FAILING} from './storage-double.ts';
import {STORAGE_LIMIT_MS} from './transact.ts';
import type {Pin} from './types.ts';

const NOW = 1_790_000_000_000;
const DAY = 86_400_000;

const pin = (slotId: string, more: Partial<Pin> = {}): Pin => ({
  slotId,
  creativeId: 'ryokan-1',
  page: 2,
  foldedAt: NOW,
  expiresAt: NOW + DAY,
  ...more,
});

test.each<[string, number | undefined, number]>([
  ['an open-ended campaign holds a week', undefined, 7 * DAY],
  ['a campaign that ends holds as long', 3 * DAY, 3 * DAY],
  ['nothing holds more than 90 days', 400 * DAY, 90 * DAY],
  ['a campaign that has ended does not hold', -DAY, -DAY],
])('%s', (_, ends, want) => {
  expect(expiresAt(NOW, ends === undefined ? undefined : NOW + ends)).toBe(NOW + want);
});

test('a pin is kept by its slot, and replaced by the next one there', async () => {
  const {win, rows} = createStorage();
  await writePin(win, pin('top'));
  await writePin(win, pin('side', {foldedAt: NOW + 1}));
  await writePin(win, pin('top', {creativeId: 'ferry-1', foldedAt: NOW + 2}));
  expect(await readPins(win, NOW)).toEqual([
    pin('top', {creativeId: 'ferry-1', foldedAt: NOW + 2}),
    pin('side', {foldedAt: NOW + 1}),
  ]);
  expect(await rows('promovolve-dogear', 'pins')).toHaveLength(2);
});

test('expired pins are dropped on read', async () => {
  const {win, rows} = createStorage();
  await writePin(win, pin('old', {expiresAt: NOW}));
  await writePin(win, pin('new', {expiresAt: NOW + 1}));
  expect((await readPins(win, NOW)).map(({slotId}) => slotId)).toEqual(['new']);
  await vi.waitFor(async () => {
    expect(await rows('promovolve-dogear', 'pins')).toHaveLength(1);
  });
});

test('a pin that another tab has replaced is not deleted', async () => {
  const {win} = createStorage();
  await writePin(win, pin('top'));
  const [seen] = await readPins(win, NOW);
  await writePin(win, pin('top', {creativeId: 'other'})); // the other tab
  await deletePins(win, ({creativeId}) => creativeId === seen?.creativeId);
  expect((await readPins(win, NOW)).map(({creativeId}) => creativeId)).toEqual(['other']);
});

test.each<[string, object]>([
  ['without a creative', {creativeId: ''}],
  ['with a time that is none', {foldedAt: 'yesterday'}],
  ['that never expires', {expiresAt: Number.POSITIVE_INFINITY}],
])('a row %s is no pin', async (_, spoilt) => {
  const {win, open} = createStorage();
  await writePin(win, pin('good'));
  const db = await open('promovolve-dogear');
  const transaction = db.transaction('pins', 'readwrite');
  transaction.objectStore('pins').put({...pin('bad'), ...spoilt});
  await new Promise((resolve) => {
    transaction.oncomplete = resolve;
  });
  db.close();
  expect((await readPins(win, NOW)).map(({slotId}) => slotId)).toEqual(['good']);
});

describe('the database of another script', () => {
  test('of version 1 with more stores is used and left as it is', async () => {
    const {win, open} = createStorage();
    (
      await open('promovolve-dogear', 1, (db) => {
        db.createObjectStore('pins', {keyPath: 'slotId'});
        db.createObjectStore('meta');
      })
    ).close();
    await writePin(win, pin('top'));
    expect(await readPins(win, NOW)).toHaveLength(1);
    const db = await open('promovolve-dogear');
    expect([db.version, Array.from(db.objectStoreNames)]).toEqual([1, ['meta', 'pins']]);
  });

  test('of a higher version is used and left as it is', async () => {
    const {win, open} = createStorage();
    (
      await open('promovolve-dogear', 7, (db) => {
        db.createObjectStore('pins', {keyPath: 'slotId'});
      })
    ).close();
    await writePin(win, pin('top'));
    expect(await readPins(win, NOW)).toHaveLength(1);
    expect((await open('promovolve-dogear')).version).toBe(7);
  });

  test('without our store is left alone', async () => {
    const {win, open} = createStorage();
    (await open('promovolve-dogear', 1, (db) => db.createObjectStore('else'))).close();
    await writePin(win, pin('top'));
    expect(await readPins(win, NOW)).toEqual([]);
    expect(Array.from((await open('promovolve-dogear')).objectStoreNames)).toEqual(['else']);
  });

  test('ours can be opened by a script that asks for version 1', async () => {
    const {win, open} = createStorage();
    await writePin(win, pin('top'));
    await expect(open('promovolve-dogear', 1)).resolves.toBeDefined();
  });

  test('that is being upgraded in another tab is not held up by us', async () => {
    const {win, open} = createStorage();
    await writePin(win, pin('top'));
    await expect(open('promovolve-dogear', 2)).resolves.toBeDefined();
  });
});

describe('where storage fails', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each(Object.keys(FAILING))(
    '(%s) nothing is read and nothing thrown, in 400 ms',
    async (how) => {
      vi.useFakeTimers();
      const {win} = createStorage(FAILING[how] ?? null);
      const calls = Promise.all([
        readPins(win, NOW),
        writePin(win, pin('top')),
        deletePins(win, () => true),
      ]);
      await vi.advanceTimersByTimeAsync(STORAGE_LIMIT_MS);
      expect(await calls).toEqual([[], undefined, undefined]);
    },
  );
});

test('a full disk loses the pin and nothing else', async () => {
  const {win} = createStorage();
  await writePin(win, pin('top'));
  // Structured clone refuses functions, as a disk refuses what it has no room for.
  await writePin(win, {...pin('full'), page: (() => {}) as unknown as number});
  expect((await readPins(win, NOW)).map(({slotId}) => slotId)).toEqual(['top']);
});
