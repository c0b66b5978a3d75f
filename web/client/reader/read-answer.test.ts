import {describe, expect, test} from 'vitest';
import {readAnswer} from './read-answer.ts';

const BASE = 'https://d.example';
const urls = {
  impUrl: '/v1/imp?t=1',
  viewUrl: '/v1/view?t=1',
  clickUrl: '/v1/click?t=1',
  ctaUrl: '/v1/cta?t=1',
};
const winner = {
  creativeId: 'ferry-1',
  campaignId: 'camp',
  version: 3,
  pages: [{headline: 'Hello', image: {src: '/_deckle/asset/ab', alt: 'A', focus: {x: 0, y: 1}}}],
  landingUrl: 'https://ferry.example/',
  ...urls,
};
const answer = (bid: object, more: object = {}) =>
  readAnswer({seatbid: [{id: 'a', ...bid}], ...more}, BASE);

test('a winner is read whole, and its addresses become absolute', () => {
  const got = answer({
    winner: {...winner, foldToken: 'T', pinExpiresAt: 5},
    dogear: {honored: true},
  });
  const won = got.winners.get('a');
  expect(won).toMatchObject({
    creativeId: 'ferry-1',
    campaignId: 'camp',
    impUrl: 'https://d.example/v1/imp?t=1',
    foldToken: 'T',
    pinExpiresAt: 5,
    honored: true,
  });
  expect(won?.creative.pages).toEqual([
    {
      headline: 'Hello',
      image: {src: 'https://d.example/_deckle/asset/ab', alt: 'A', focus: {x: 0, y: 1}},
    },
  ]);
});

test('a campaign without a dog-ear has no token and no end', () => {
  const won = answer({winner}).winners.get('a');
  expect(won?.foldToken).toBe('');
  expect(won).not.toHaveProperty('pinExpiresAt');
});

test('a pin is gone only where the server says so', () => {
  const removed = {honored: false, reason: 'creative_removed'};
  expect(answer({dogear: removed}, {stalePins: ['dead', '<b>', 7]})).toMatchObject({
    removed: ['a'],
    stale: ['dead'],
  });
  for (const dogear of [
    undefined,
    null,
    {honored: false},
    {honored: true, reason: 'creative_removed'},
  ]) {
    expect(answer({dogear}).removed).toEqual([]);
  }
});

test.each<[unknown, number]>([
  [2000, 2000],
  [0, 0],
  [-1, 0],
  [86_400_000, 0],
  ['2000', 0],
])('retryInMs %j is %d', (retryInMs, want) => {
  expect(answer({}, {retryInMs}).retryInMs).toBe(want);
});

describe('what cannot be shown has not won', () => {
  test.each<[string, object]>([
    ['no pages', {pages: []}],
    ['pages that are none', {pages: ['x', null]}],
    ['no creative', {creativeId: '<script>'}],
    ['no beacon', {impUrl: undefined}],
    ['a beacon that is a script', {clickUrl: 'javascript:alert(1)'}],
  ])('%s', (_, spoilt) => {
    expect(answer({winner: {...winner, ...spoilt}}).winners.size).toBe(0);
  });
});

test.each([
  'javascript:alert(1)',
  'data:text/html,x',
  ' java\nscript:x',
  'blob:https://d.example/1',
  7,
  '',
])('landing page %j is none', (landingUrl) => {
  expect(answer({winner: {...winner, landingUrl}}).winners.get('a')?.creative.landingUrl).toBe('');
});

test.each([null, [], 'x', {}, {seatbid: {}}, {seatbid: [null, {id: 5}, {id: '__proto__ x'}]}])(
  '%j is an empty answer',
  (value) => {
    const {winners, removed, stale} = readAnswer(value, BASE);
    expect([winners.size, removed, stale]).toEqual([0, [], []]);
  },
);
