import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {createStock} from './create-stock.ts';
import {createDocumentDouble} from './document-double.ts';
import type {TCData} from './page.ts';

/** An edge that answers what it is told to, when it is told to. */
const createEdge = () => {
  const asked: {url: string; init: RequestInit; answer: (value: unknown) => void}[] = [];
  const fetch = (url: string, init: RequestInit) =>
    new Promise((resolve, reject) => {
      init.signal?.addEventListener('abort', () => reject(new Error('aborted')));
      const answer = (value: unknown) =>
        resolve({ok: value !== undefined, json: async () => value});
      asked.push({url, init, answer});
    });
  return {asked, fetch};
};

const page = (adId: string, skip?: string) => ({
  slots: [{id: 'top'}],
  bids: skip ? {} : {top: {hb_adid: adId}},
  markup: skip ? {} : {[adId]: `<b>${adId}</b>`},
  skip,
});

const setUp = () => {
  const edge = createEdge();
  vi.stubGlobal('fetch', edge.fetch);
  vi.stubGlobal('location', {origin: 'https://www.test'});
  const {win} = createDocumentDouble();
  const location = {pathname: '/a%20b'};
  Object.assign(win, {location});
  const cmp: ((data: TCData, success: boolean) => void)[] = [];
  win.__tcfapi = (_command, _version, listener) => {
    cmp.push(listener as (data: TCData, success: boolean) => void);
  };
  const say = (yes: boolean) => {
    const purpose = {consents: {1: yes, 2: yes}};
    for (const hear of cmp)
      hear({eventStatus: 'useractioncomplete', gdprApplies: true, purpose}, true);
  };
  const events: unknown[] = [];
  const seen = {forgotten: 0};
  const stock = createStock(win, {
    emit: (name, detail) => events.push([name, detail]),
    onForget: () => seen.forgotten++,
  });
  return {edge, win, location, say, stock, events, seen};
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('the bids of the page where the window is', async () => {
  const {edge, win, stock, events} = setUp();
  const obtained = stock.obtain();
  expect(edge.asked[0]?.url).toBe('https://www.test/__ts/page-bids?path=%2Fa%2520b');
  expect(edge.asked[0]?.init).toMatchObject({method: 'GET', headers: {'X-Deckle': '1'}});
  edge.asked[0]?.answer(page('AD1'));
  expect(await obtained).toBe(true);
  expect(win.__ts_ad_slots).toEqual([{id: 'top'}]);
  expect(win.__ts_bids).toEqual({top: {hb_adid: 'AD1'}});
  expect(stock.bids.forSlot('top')?.adId).toBe('AD1');
  expect(stock.markup.get('AD1')).toBe('<b>AD1</b>');
  expect(events).toEqual([['auctionEnd', {slots: ['top']}]]);
});

test('a page that has gone on gives up what was asked for the one before', async () => {
  const {edge, location, stock} = setUp();
  const first = stock.obtain();
  location.pathname = '/c';
  const second = stock.obtain();
  expect(edge.asked[0]?.init.signal?.aborted).toBe(true);
  edge.asked[1]?.answer(page('AD2'));
  expect(await first).toBe(false);
  expect(await second).toBe(true);
  expect(stock.bids.forSlot('top')?.adId).toBe('AD2');
});

test.each([undefined, null, [], 'x', {}, {slots: 7, bids: [], markup: {}}])(
  'an answer that is none leaves the page as it is: %j',
  async (answer) => {
    const {edge, win, stock} = setUp();
    win.__ts_ad_slots = 'the page’s';
    const obtained = stock.obtain();
    edge.asked[0]?.answer(answer);
    expect(await obtained).toBe(true);
    expect(win.__ts_ad_slots).toBe('the page’s');
    expect(stock.bids.forSlot('top')).toBeUndefined();
  },
);

test('an edge that does not answer is waited for five seconds', async () => {
  const {stock} = setUp();
  const obtained = stock.obtain();
  vi.advanceTimersByTime(5000);
  expect(await obtained).toBe(true);
});

test('where the edge misses consent it is asked once more after a yes', async () => {
  const {edge, say, stock} = setUp();
  const obtained = stock.obtain();
  edge.asked[0]?.answer(page('', 'no_consent'));
  await vi.advanceTimersByTimeAsync(0);
  expect(edge.asked).toHaveLength(1);
  say(true);
  await vi.advanceTimersByTimeAsync(0);
  edge.asked[1]?.answer(page('AD1'));
  expect(await obtained).toBe(true);
  expect(stock.bids.forSlot('top')?.adId).toBe('AD1');
});

test('after a no nobody is asked, and what was there is gone', async () => {
  const {edge, say, stock, seen, win} = setUp();
  expect(await stock.permit('')).toBe(true);
  stock.receive({top: {hb_adid: 'AD1'}});
  say(false);
  expect(seen.forgotten).toBe(1);
  expect(win.__ts_bids).toEqual({});
  expect(stock.bids.forSlot('top')).toBeUndefined();
  stock.receive({top: {hb_adid: 'AD2'}});
  expect(stock.bids.forSlot('top')).toBeUndefined();
  await stock.obtain();
  expect(await stock.request([{code: 'top'}])).toEqual([]);
  expect(edge.asked).toHaveLength(0);
  stock.consent(true); // a change of mind
  const obtained = stock.obtain();
  edge.asked[0]?.answer(page('AD3'));
  await obtained;
  expect(stock.bids.forSlot('top')?.adId).toBe('AD3');
});

test('bids that come after a no are not used', async () => {
  const {edge, say, stock} = setUp();
  await stock.permit('');
  const obtained = stock.obtain();
  const requested = stock.request([{code: 'top'}]);
  say(false);
  edge.asked[0]?.answer(page('AD1'));
  edge.asked[1]?.answer({
    seatbid: [{bid: [{impid: 'top', adm: 'x', ext: {targeting: {hb_adid: 'AD2'}}}]}],
  });
  await obtained;
  expect(await requested).toEqual([]);
  expect(stock.bids.forSlot('top')).toBeUndefined();
});

test('ad units are asked for in Prebid’s words', async () => {
  const {edge, stock} = setUp();
  const units = [{code: 'new', mediaTypes: {banner: {sizes: [[300, 250]]}}}];
  const requested = stock.request(units);
  expect(edge.asked[0]?.url).toBe('https://www.test/auction');
  expect(edge.asked[0]?.init.method).toBe('POST');
  expect(JSON.parse(String(edge.asked[0]?.init.body))).toEqual({adUnits: units});
  edge.asked[0]?.answer({
    seatbid: [
      {bid: [{impid: 'new', adm: '<b>', w: 300, h: 250, ext: {targeting: {hb_adid: 'AD1'}}}]},
    ],
  });
  expect(await requested).toEqual(['new']);
  expect(stock.bids.forSlot('new')).toMatchObject({adId: 'AD1', w: 300, h: 250});
  expect(stock.markup.get('AD1')).toBe('<b>');
});
