import {expect, test} from 'vitest';
import {getSlots} from './get-slots.ts';

const entry = {
  id: 'top',
  gam_unit_path: '/1/top',
  div_id: 'div-top',
  formats: [[300, 250]],
  targeting: {pos: ['atf']},
  kind: 'gpt',
  deadline_ms: 420,
};

test('GPT slots are taken as the edge writes them', () => {
  expect(getSlots([entry])).toEqual([
    {
      id: 'top',
      gamUnitPath: '/1/top',
      divId: 'div-top',
      formats: [[300, 250]],
      targeting: {pos: ['atf']},
      own: false,
      deadlineMs: 420,
    },
  ]);
});

test('a slot without an ad server needs no unit path', () => {
  const {gam_unit_path: _, ...without} = entry;
  expect(getSlots([{...without, ad_server: 'none'}])[0]).toMatchObject({
    own: true,
    gamUnitPath: '',
  });
  expect(getSlots([without])).toEqual([]);
});

test('without a deadline nobody waits', () => {
  const {deadline_ms: _, ...without} = entry;
  expect(getSlots([without])[0]?.deadlineMs).toBe(0);
});

test.each([
  undefined,
  'slots',
  {0: entry, length: 1},
  [null, 7, {...entry, kind: 'magazine'}, {...entry, div_id: 1}],
])('what is no list of GPT slots has none: %j', (value) => {
  expect(getSlots(value)).toEqual([]);
});
