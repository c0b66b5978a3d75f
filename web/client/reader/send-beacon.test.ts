import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {sendBeacon} from './send-beacon.ts';

const setUp = (...statuses: number[]) => {
  const win = new EventTarget() as unknown as Window;
  const requests: {at: number; init: RequestInit}[] = [];
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    requests.push({at: Date.now(), init});
    const status = statuses.shift() ?? 204;
    if (status === 0) throw new TypeError('offline');
    return {status};
  });
  return {win, requests, at: () => requests.map(({at}) => at)};
};

beforeEach(() => {
  vi.useFakeTimers({now: 0});
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('one that is heard is fired once, without cookies, and outlives the page', async () => {
  const {win, requests} = setUp();
  void sendBeacon(win, 'https://d.example/v1/imp?t=T');
  await vi.runAllTimersAsync();
  expect(requests.map(({init}) => init)).toEqual([
    expect.objectContaining({keepalive: true, credentials: 'omit'}),
  ]);
  expect(requests[0]?.init.method).toBeUndefined(); // GET
});

test('one that is not heard is fired again, until its token has become stale', async () => {
  const {win, at} = setUp(0, 429, 503, 0, 0, 0, 0, 0);
  void sendBeacon(win, 'https://d.example/v1/imp?t=T');
  await vi.runAllTimersAsync();
  expect(at()).toEqual([0, 1000, 6000, 21_000, 66_000, 156_000]);
});

test('a refusal is final', async () => {
  const {win, at} = setUp(403);
  void sendBeacon(win, 'https://d.example/v1/imp?t=T');
  await vi.runAllTimersAsync();
  expect(at()).toEqual([0]);
});

test('it is fired at once when the connection is back', async () => {
  const {win, at} = setUp(0, 0);
  void sendBeacon(win, 'https://d.example/v1/imp?t=T');
  await vi.advanceTimersByTimeAsync(1500);
  win.dispatchEvent(new Event('online'));
  await vi.runAllTimersAsync();
  expect(at()).toEqual([0, 1000, 1500]);
});
