import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {createDocumentDouble} from './document-double.ts';
import {getSlots} from './get-slots.ts';
import {receiveBids} from './receive-bids.ts';

const slot = {id: 'a', gam_unit_path: '/1/a', div_id: 'a', formats: [], targeting: {}, kind: 'gpt'};

/** Mutations are of no interest here: the browser tests have a parser that makes some. */
class Observer {
  observe() {}
  disconnect() {}
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('MutationObserver', Observer);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const setUp = (
  deadlineMs: number | undefined,
  {bids, parsedMsAgo = 0}: {bids?: unknown; parsedMsAgo?: number} = {},
) => {
  const {win} = createDocumentDouble();
  if (bids) win.__ts_bids = bids;
  const received: unknown[] = [];
  const slots = getSlots([deadlineMs === undefined ? slot : {...slot, deadline_ms: deadlineMs}]);
  const parsedAt = performance.now() - parsedMsAgo;
  const receiver = receiveBids(win, {slots, parsedAt}, (value) => received.push(value));
  const seen = {settled: false};
  receiver.settled.then(() => {
    seen.settled = true;
  });
  return {received, seen, receiver};
};

test('bids that are in the page already are taken at once', async () => {
  const {received, seen} = setUp(400, {bids: {a: {}}});
  await vi.advanceTimersByTimeAsync(0);
  expect([received, seen.settled]).toEqual([[{a: {}}], true]);
});

test('late bids are waited for until the deadline and 50 ms for their way, and no longer', async () => {
  const {received, seen} = setUp(400, {parsedMsAgo: 100});
  await vi.advanceTimersByTimeAsync(349);
  expect(seen.settled).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect([received, seen.settled]).toEqual([[], true]);
});

test('the wait ends when they come', async () => {
  const {received, seen, receiver} = setUp(400);
  await vi.advanceTimersByTimeAsync(50);
  receiver.deliver({a: {}});
  await vi.advanceTimersByTimeAsync(0);
  expect([received, seen.settled]).toEqual([[{a: {}}], true]);
});

test.each([
  ['without a deadline', undefined, 0],
  ['with one that has passed before the client was loaded', 400, 500],
])('%s nobody waits', async (_, deadlineMs, parsedMsAgo) => {
  const {seen} = setUp(deadlineMs, {parsedMsAgo});
  await vi.advanceTimersByTimeAsync(0);
  expect(seen.settled).toBe(true);
});
