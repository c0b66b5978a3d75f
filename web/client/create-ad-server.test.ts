import {afterEach, beforeEach, describe, expect, test, vi} from 'vitest';
import {createAdServer} from './create-ad-server.ts';
import {getBids} from './get-bids.ts';
import {createGPTDouble, type Interface} from './gpt-double.ts';
import type {Bid, Slot} from './page.ts';

const slot = (id: string): Slot => ({
  id,
  gamUnitPath: `/1/${id}`,
  divId: `div-${id}`,
  formats: [[300, 250]],
  targeting: {pos: ['atf']},
  own: false,
  deadlineMs: 0,
});

const setUp = (kind: Interface, entries: Record<string, unknown> = {}) => {
  const bids = new Map(getBids(entries, Date.now()).map((bid): [string, Bid] => [bid.slotId, bid]));
  const gpt = createGPTDouble(kind);
  const win = {googletag: gpt.googletag} as Window;
  const rendered: string[] = [];
  const create = () =>
    createAdServer(win, {
      bidFor: (id) => bids.get(id),
      onRender: (adId) => rendered.push(adId),
    });
  const receive = (more: Record<string, unknown>) => {
    for (const bid of getBids(more, Date.now())) bids.set(bid.slotId, bid);
  };
  return {gpt, rendered, create, receive};
};

const kargo = {hb_adid: 'AD1', hb_pb: '2.50', hb_bidder: 'kargo', w: 300, h: 250};

describe.each<Interface>(['config', 'methods'])('through GPT’s %s', (kind) => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('all slots go in a single request, with the bid of each', () => {
    const {gpt, create} = setUp(kind, {a: kargo});
    create().request([slot('a'), slot('b')]);
    expect(gpt.singleRequest).toBe(true);
    expect(gpt.requests).toEqual([
      [
        {
          div: 'div-a',
          targeting: {
            pos: ['atf'],
            hb_adid: 'AD1',
            hb_pb: '2.50',
            hb_bidder: 'kargo',
            ts_initial: '1',
          },
        },
        {div: 'div-b', targeting: {pos: ['atf'], ts_initial: '1'}},
      ],
    ]);
  });

  test('after the render only the template’s targeting is left', () => {
    const {gpt, rendered, create} = setUp(kind, {a: kargo});
    const adServer = create();
    adServer.request([slot('a')]);
    expect(adServer.holdersOf('AD1')).toEqual(['div-a']);
    gpt.render('div-a');
    expect(gpt.targetingOf('div-a')).toEqual({pos: ['atf']});
    expect(rendered).toEqual(['AD1']);
    // The creative may still ask for its markup, until the slot is refreshed.
    expect(adServer.holdersOf('AD1')).toEqual(['div-a']);
    gpt.googletag.pubads().refresh();
    expect(adServer.holdersOf('AD1')).toEqual([]);
  });

  test('an empty slot has rendered nothing', () => {
    const {gpt, rendered, create} = setUp(kind, {a: kargo});
    create().request([slot('a')]);
    gpt.render('div-a', {isEmpty: true});
    expect(rendered).toEqual([]);
    expect(gpt.targetingOf('div-a')).toEqual({pos: ['atf']});
  });

  test('a slot of the page that was not requested yet is reused and requested once', () => {
    const {gpt, create} = setUp(kind, {a: kargo});
    gpt.googletag.defineSlot('/page/own', [1, 1], 'div-a');
    const adServer = create();
    adServer.request([slot('a')]);
    gpt.googletag.display('div-a'); // the page's own call comes afterwards
    expect(gpt.requests).toHaveLength(1);
    expect(gpt.requests[0]).toMatchObject([{div: 'div-a', targeting: {hb_adid: 'AD1'}}]);
  });

  test('a slot of the page that is being requested keeps our keys for its next request', () => {
    const {gpt, rendered, create} = setUp(kind, {a: kargo});
    const adServer = create();
    gpt.googletag.defineSlot('/page/own', [1, 1], 'div-a');
    gpt.googletag.enableServices();
    gpt.googletag.display('div-a');
    adServer.request([slot('a')]);
    gpt.render('div-a');
    expect(rendered).toEqual(['']);
    expect(gpt.requests).toHaveLength(1);
    expect(gpt.targetingOf('div-a')).toMatchObject({hb_adid: 'AD1'});
    gpt.googletag.pubads().refresh();
    gpt.render('div-a');
    expect(rendered).toEqual(['', 'AD1']);
    expect(gpt.targetingOf('div-a')).toEqual({pos: ['atf']});
  });

  test('where initial load is disabled slots are refreshed once, together', () => {
    const {gpt, create} = setUp(kind, {a: kargo});
    if (kind === 'config') gpt.googletag.setConfig({disableInitialLoad: true});
    else gpt.googletag.pubads().disableInitialLoad();
    gpt.googletag.defineSlot('/page/own', [1, 1], 'div-a');
    create().request([slot('a'), slot('b')]);
    expect(gpt.requests.map((request) => request.map(({div}) => div))).toEqual([
      ['div-a', 'div-b'],
    ]);
  });

  test('a slot that the page has refreshed itself is not requested again', () => {
    const {gpt, create} = setUp(kind, {a: kargo});
    const adServer = create();
    if (kind === 'config') gpt.googletag.setConfig({disableInitialLoad: true});
    else gpt.googletag.pubads().disableInitialLoad();
    gpt.googletag.defineSlot('/page/own', [1, 1], 'div-a');
    gpt.googletag.pubads().refresh();
    adServer.request([slot('a')]);
    expect(gpt.requests).toHaveLength(1);
  });

  test('a refresh before the render does not carry the keys any further', () => {
    const {gpt, create} = setUp(kind, {a: kargo});
    const adServer = create();
    adServer.request([slot('a')]);
    gpt.googletag.pubads().refresh();
    gpt.googletag.pubads().refresh();
    expect(gpt.requests[2]).toEqual([{div: 'div-a', targeting: {pos: ['atf']}}]);
    expect(adServer.holdersOf('AD1')).toEqual([]);
  });

  test('a bid that expires before the page requests the slot is taken off it', () => {
    const {gpt, create} = setUp(kind, {a: {...kargo, exp: 60}});
    const adServer = create();
    gpt.googletag.defineSlot('/page/own', [1, 1], 'div-a');
    gpt.googletag.enableServices();
    gpt.googletag.display('div-a');
    adServer.request([slot('a')]);
    vi.advanceTimersByTime(59_999);
    expect(gpt.targetingOf('div-a')).toMatchObject({hb_adid: 'AD1'});
    vi.advanceTimersByTime(1);
    expect(gpt.targetingOf('div-a')).toEqual({pos: ['atf']});
  });

  test('what is withdrawn is gone from every slot', () => {
    const {gpt, create} = setUp(kind, {a: kargo, b: {...kargo, hb_adid: 'AD2'}});
    const adServer = create();
    adServer.request([slot('a'), slot('b')]);
    adServer.withdraw();
    expect(gpt.targetingOf('div-a')).toEqual({pos: ['atf']});
    expect(gpt.targetingOf('div-b')).toEqual({pos: ['atf']});
  });
});

describe.each<Interface>(['config', 'methods'])('again, through GPT’s %s', (kind) => {
  test('a refresh carries the new bid and nothing of the old one', () => {
    const entries: Record<string, unknown> = {a: {...kargo, hb_deal: 'D-1'}};
    const {gpt, rendered, create, receive} = setUp(kind, entries);
    const adServer = create();
    adServer.request([slot('a'), slot('b')]);
    gpt.render('div-a');
    receive({a: {hb_adid: 'AD2', hb_pb: '1.00'}});
    adServer.withdraw([slot('a')]);
    adServer.refresh([slot('a'), slot('never-requested')]);
    expect(gpt.requests[1]).toEqual([
      {div: 'div-a', targeting: {pos: ['atf'], hb_adid: 'AD2', hb_pb: '1.00'}},
    ]);
    gpt.render('div-a');
    expect(rendered).toEqual(['AD1', 'AD2']);
    expect(gpt.targetingOf('div-a')).toEqual({pos: ['atf']});
  });

  test('only the slots that are meant lose what was set', () => {
    const {gpt, create} = setUp(kind, {a: kargo, b: {...kargo, hb_adid: 'AD2'}});
    const adServer = create();
    adServer.request([slot('a'), slot('b')]);
    adServer.withdraw([slot('a'), slot('c')]);
    expect(gpt.targetingOf('div-a')).toEqual({pos: ['atf']});
    expect(gpt.targetingOf('div-b')).toMatchObject({hb_adid: 'AD2'});
  });

  test('a page that is left gives up our slots and keeps its own', () => {
    const {gpt, create, receive} = setUp(kind, {a: kargo, b: kargo});
    const adServer = create();
    gpt.googletag.defineSlot('/page/own', [1, 1], 'div-b');
    adServer.request([slot('a'), slot('b')]);
    adServer.leave();
    expect(adServer.holdersOf('AD1')).toEqual(['div-b']);
    receive({a: {hb_adid: 'AD3'}});
    adServer.request([slot('a')]); // the same element, on the next page
    expect(gpt.requests[1]).toMatchObject([{div: 'div-a', targeting: {hb_adid: 'AD3'}}]);
  });
});

test('commands wait for gpt.js in the queue that the page may have begun', () => {
  const queue: (() => void)[] = [];
  const win = {googletag: {cmd: queue}} as unknown as Window;
  createAdServer(win, {bidFor: () => undefined, onRender: () => {}}).request([slot('a')]);
  const gpt = createGPTDouble('config');
  win.googletag = gpt.googletag;
  for (const command of queue) command();
  expect(gpt.requests).toMatchObject([[{div: 'div-a'}]]);
});
