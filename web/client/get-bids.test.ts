import {describe, expect, test} from 'vitest';
import {getBids} from './get-bids.ts';

const NOW = 1_000_000;

test('every hb_* string is targeting, and nothing else is', () => {
  const entry = {
    hb_adid: 'AD1',
    hb_pb: '2.50',
    hb_size: '300x250',
    hb_deal: 5,
    pos: 'btf',
    w: 300,
    h: 250,
    burl: 'https://b.example/?a',
  };
  expect(getBids({top: entry}, NOW)).toEqual([
    {
      slotId: 'top',
      adId: 'AD1',
      targeting: {hb_adid: 'AD1', hb_pb: '2.50', hb_size: '300x250'},
      w: 300,
      h: 250,
      notices: ['https://b.example/?a'],
      burlOn: 'creative',
      expiresAt: NOW + 300_000,
    },
  ]);
});

describe('exp', () => {
  test.each([
    [60, 60_000],
    [3600, 300_000],
    [0, 300_000],
    [-1, 300_000],
    ['60', 300_000],
    [Number.NaN, 300_000],
  ])('%j seconds end after %d ms', (exp, ms) => {
    expect(getBids({top: {hb_adid: 'AD1', exp}}, NOW)[0]?.expiresAt).toBe(NOW + ms);
  });
});

describe('notices', () => {
  test('burl comes with the nurl that the edge has left to the client', () => {
    const [bid] = getBids({a: {hb_adid: 'A', burl: 'http://b.example', nurl: 'https://n'}}, NOW);
    expect(bid?.notices).toEqual(['http://b.example', 'https://n']);
  });

  test.each([
    'javascript:alert(1)',
    'data:text/html,x',
    '//b.example/',
    '/burl',
    ' https://b.example',
    'blob:https://b.example/1',
    7,
    null,
    {},
  ])('%j is none', (burl) => {
    expect(getBids({a: {hb_adid: 'A', burl}}, NOW)[0]?.notices).toEqual([]);
  });
});

describe('hostile values', () => {
  test('a slot called __proto__ changes no prototype', () => {
    const value = JSON.parse(
      '{"__proto__":{"hb_adid":"A","hb_pb":"9"},"constructor":{"hb_adid":"B"}}',
    );
    expect(getBids(value, NOW).map((bid) => bid.slotId)).toEqual(['__proto__', 'constructor']);
    expect(({} as Record<string, unknown>).hb_pb).toBeUndefined();
  });

  test('a key called __proto__ is not targeting', () => {
    const [bid] = getBids(JSON.parse('{"a":{"hb_adid":"A","__proto__":{"hb_x":"1"}}}'), NOW);
    expect(bid?.targeting).toEqual({hb_adid: 'A'});
  });

  test.each([
    null,
    [],
    'bids',
    {a: null},
    {a: []},
    {a: {hb_pb: '1'}},
    {a: {hb_adid: ''}},
    {a: {hb_adid: 1}},
  ])('%j has no bids', (value) => {
    expect(getBids(value, NOW)).toEqual([]);
  });
});
