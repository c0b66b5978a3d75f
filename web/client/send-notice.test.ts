import {afterEach, expect, test, vi} from 'vitest';
import {sendNotice} from './send-notice.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

test('a notice is a GET without cookies that outlives the page', () => {
  const calls: unknown[][] = [];
  vi.stubGlobal('fetch', (...args: unknown[]) => {
    calls.push(args);
    return Promise.reject(new Error('refused'));
  });
  sendNotice('https://b.example/');
  expect(calls).toEqual([
    [
      'https://b.example/',
      expect.objectContaining({keepalive: true, credentials: 'omit', mode: 'no-cors'}),
    ],
  ]);
  expect(calls[0]?.[1]).not.toHaveProperty('method');
});

test.each([
  ['there is no fetch', undefined],
  [
    'the page’s own fetch throws',
    () => {
      throw new Error('patched');
    },
  ],
  ['the page’s own fetch gives back nothing', () => undefined],
])('it never throws where %s', (_, fetch) => {
  vi.stubGlobal('fetch', fetch);
  expect(() => sendNotice('https://b.example/')).not.toThrow();
});
