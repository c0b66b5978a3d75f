import {expect, test} from 'vitest';
import {createBids} from './create-bids.ts';

const setUp = () => {
  const clock = {now: 0};
  const bids = createBids(() => clock.now);
  return {clock, bids};
};

test('a bid is found by its slot and by its ad id', () => {
  const {bids} = setUp();
  bids.receive({top: {hb_adid: 'AD1'}});
  expect(bids.forSlot('top')?.adId).toBe('AD1');
  expect(bids.forCreative('AD1')?.slotId).toBe('top');
  expect(bids.forSlot('AD1')).toBeUndefined();
  expect(bids.forSlot('__proto__')).toBeUndefined();
});

test('a bid that has expired is gone', () => {
  const {clock, bids} = setUp();
  bids.receive({top: {hb_adid: 'AD1', exp: 30}, side: {hb_adid: 'AD2'}});
  clock.now = 29_999;
  expect(bids.forSlot('top')).toBeDefined();
  clock.now = 30_000;
  expect(bids.forSlot('top')).toBeUndefined();
  expect(bids.forCreative('AD1')).toBeUndefined();
  expect(bids.forBilling('AD1')?.slotId).toBe('top');
  clock.now = 299_999;
  expect(bids.forCreative('AD2')).toBeDefined();
  clock.now = 300_000;
  expect(bids.forCreative('AD2')).toBeUndefined();
});

test('what is cleared is gone, and others may come', () => {
  const {bids} = setUp();
  bids.receive({top: {hb_adid: 'AD1'}});
  bids.clear();
  expect(bids.forSlot('top')).toBeUndefined();
  bids.receive({top: {hb_adid: 'AD2'}});
  expect(bids.forSlot('top')?.adId).toBe('AD2');
  expect(bids.forBilling('AD1')).toBeUndefined();
});
