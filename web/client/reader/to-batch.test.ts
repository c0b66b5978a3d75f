import {afterEach, expect, test} from 'vitest';
import {toBatch} from './to-batch.ts';
import {toJSON} from './to-json.ts';
import type {Memory, Pin, Seen} from './types.ts';

const NOTHING: Memory = {pins: [], seen: {}, recent: []};
const pin = (n: number): Pin => ({
  slotId: `s${n}`,
  creativeId: `c${n}`,
  page: 3,
  foldedAt: 1,
  expiresAt: 2,
});

test('a batch is what the contract says', () => {
  const memory = {pins: [pin(1)], seen: {c1: {h: 1, d: 2, w: 2}}, recent: ['camp']};
  const imp = {id: 'sidebar-1', w: 300, h: 250, find: () => null};
  expect(JSON.parse(toBatch('yuki', 'https://yuki.example/a?b=c#d', [imp], memory))).toEqual({
    pub: 'yuki',
    url: 'https://yuki.example/a?b=c',
    imp: [{id: 'sidebar-1', w: 300, h: 250}],
    pins: [{slotId: 's1', creativeId: 'c1'}],
    seen: {c1: {h: 1, d: 2, w: 2}},
    recent: ['camp'],
  });
});

test('it stays within the contract’s limits', () => {
  const pins = Array.from({length: 300}, (_, n) => pin(n));
  const imps = Array.from({length: 50}, (_, n) => ({id: `s${n}`, w: 1, h: 1}));
  const href = `https://yuki.example/a?${'q'.repeat(3000)}`;
  const batch = JSON.parse(toBatch('p', href, imps, {...NOTHING, pins}));
  expect([batch.imp.length, batch.pins.length, batch.url]).toEqual([
    40,
    200,
    'https://yuki.example/a',
  ]);
  expect(batch.pins[0].slotId).toBe('s0'); // the newest
});

test('of too many pins those of the slots that are asked for go along', () => {
  const pins = Array.from({length: 300}, (_, n) => pin(n));
  const batch = JSON.parse(
    toBatch('p', 'https://a/', [{id: 's299', w: 1, h: 1}], {...NOTHING, pins}),
  );
  expect(batch.pins).toHaveLength(200);
  expect(batch.pins.slice(0, 2).map((p: Pin) => p.slotId)).toEqual(['s299', 's0']);
});

test('counts give way where a batch is too large, the oldest first, and pins never', () => {
  const long = (prefix: string, n: number) => `${prefix}${n}`.padEnd(64, '-');
  const pins = Array.from({length: 200}, (_, n) => ({
    ...pin(n),
    slotId: long('s', n),
    creativeId: long('c', n),
  }));
  const imp = {w: 1000, h: 1000, find: () => null};
  const imps = Array.from({length: 40}, (_, n) => ({...imp, id: long('i', n)}));
  const recent = Array.from({length: 40}, (_, n) => long('k', n));
  const seen: Record<string, Seen> = {};
  for (let n = 0; n < 500; n++) seen[long('c', n)] = {h: 100, d: 100, w: 100};
  const href = `https://yuki.example/${'a'.repeat(2000)}`;
  const body = toBatch('p', href, imps, {pins, seen, recent});
  const batch = JSON.parse(body);
  expect(new TextEncoder().encode(body).length).toBeLessThan(65_536);
  expect([batch.pins.length, batch.imp.length, batch.recent.length]).toEqual([200, 40, 40]);
  const kept = Object.keys(batch.seen);
  expect(kept.length).toBeGreaterThan(100);
  expect(kept).toEqual(Object.keys(seen).slice(-kept.length));
});

const prototype = Array.prototype as {toJSON?: unknown};
afterEach(() => {
  delete prototype.toJSON;
});

test('a page’s own Array.prototype.toJSON does not get at it', () => {
  prototype.toJSON = () => 'spoilt';
  expect(toJSON({a: [1, 'x', null, {b: true}], c: undefined, '"': []})).toBe(
    '{"a":[1,"x",null,{"b":true}],"\\"":[]}',
  );
});
