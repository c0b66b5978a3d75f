import {expect, test} from 'vitest';
import {createStorage} from './storage-double.ts';
import {forgetVisits, readVisits, rememberVisit} from './visits.ts';

const NOW = 1_790_000_000_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const visit = (creativeId: string, honored = false) => ({
  creativeId,
  campaignId: `k-${creativeId}`,
  honored,
});

test('what was seen is counted by hour, day and week', async () => {
  const {win} = createStorage();
  for (const ago of [8 * DAY, 6 * DAY, 2 * HOUR, HOUR / 2, 0]) {
    await rememberVisit(win, visit('a'), NOW - ago);
  }
  await rememberVisit(win, visit('b'), NOW - 2 * HOUR);
  const {seen} = await readVisits(win, NOW);
  expect({...seen}).toEqual({a: {h: 2, d: 3, w: 4}, b: {h: 0, d: 1, w: 1}});
});

test('a bookmark is recent, and never too often', async () => {
  const {win} = createStorage();
  await rememberVisit(win, visit('a', true), NOW);
  const {seen, recent} = await readVisits(win, NOW);
  expect([{...seen}, recent]).toEqual([{}, ['k-a']]);
});

test('campaigns are recent for 15 seconds, all of one page', async () => {
  const {win, rows} = createStorage();
  await rememberVisit(win, visit('a'), NOW);
  await rememberVisit(win, visit('b'), NOW + 10);
  expect((await readVisits(win, NOW + 14_999)).recent).toEqual(['k-a', 'k-b']);
  expect((await readVisits(win, NOW + 15_005)).recent).toEqual(['k-b']);
  await rememberVisit(win, visit('c'), NOW + 60_000);
  expect(await rows('deckle', 'recent')).toHaveLength(1);
});

test('of too many campaigns and creatives the latest are told', async () => {
  const {win} = createStorage();
  for (let n = 0; n < 50; n++) await rememberVisit(win, visit(`c${n}`), NOW + n);
  const {seen, recent} = await readVisits(win, NOW + 50);
  expect([recent.length, recent[0], recent[39]]).toEqual([40, 'k-c10', 'k-c49']);
  expect([Object.keys(seen)[0], Object.keys(seen)[49]]).toEqual(['c0', 'c49']); // not c0, c1, c10
});

test('what is older than a week is deleted', async () => {
  const {win, rows} = createStorage();
  await rememberVisit(win, visit('a'), NOW);
  await rememberVisit(win, visit('b'), NOW + 8 * DAY);
  expect(await rows('deckle', 'seen')).toHaveLength(1);
});

test('times of a clock that was ahead do not count', async () => {
  const {win} = createStorage();
  await rememberVisit(win, visit('a'), NOW + DAY);
  expect(await readVisits(win, NOW)).toEqual({seen: {}, recent: []});
});

test('everything is forgotten when the reader refuses', async () => {
  const {win, rows} = createStorage();
  await rememberVisit(win, visit('a'), NOW);
  await forgetVisits(win);
  expect(await readVisits(win, NOW)).toEqual({seen: {}, recent: []});
  expect(await rows('deckle', 'seen')).toEqual([]);
});
