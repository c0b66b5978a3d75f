import {expect, test} from 'vitest';
import {getMarkedSlots, getPageSlots} from './get-page-slots.ts';

const entry = (more: object = {}) => ({
  id: 'sidebar-1',
  div_id: 'div-sidebar',
  kind: 'magazine',
  formats: [
    [970, 250],
    [300, 250],
    [300, 600],
  ],
  ...more,
});
const sizes = (value: unknown, width: number) =>
  getPageSlots(value, width).map(({id, w, h}) => [id, w, h]);

test.each([
  [1366, 970, 250],
  [800, 300, 600],
  [200, 300, 250], // nothing fits: the narrowest
])('at %d the slot is %d × %d', (width, w, h) => {
  expect(sizes([entry()], width)).toEqual([['sidebar-1', w, h]]);
});

test('other slots are none of ours', () => {
  const others = [
    entry({kind: 'gpt'}),
    entry({id: 'a b'}),
    entry({formats: [[0, 250]]}),
    entry({div_id: 1}),
    null,
  ];
  expect(sizes(others, 1000)).toEqual([]);
  expect(sizes({}, 1000)).toEqual([]);
});

test('marked slots need an id and a size, and come once', () => {
  const mark = (deckleSlot: string, w: string, h: string) => ({dataset: {deckleSlot, w, h}});
  const marks = [
    mark('a', '300', '250'),
    mark('a', '1', '1'),
    mark('b', '', '250'),
    mark('<i>', '1', '1'),
  ];
  const doc = {querySelectorAll: () => marks} as unknown as Document;
  expect(getMarkedSlots(doc).map(({id, w, h}) => [id, w, h])).toEqual([['a', 300, 250]]);
});
