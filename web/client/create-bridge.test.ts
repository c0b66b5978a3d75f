import {expect, test} from 'vitest';
import {createBridge} from './create-bridge.ts';
import {getBids} from './get-bids.ts';
import type {Bid} from './page.ts';

/** A window as a stranger's window looks from outside: it has a parent and takes messages. */
interface WindowDouble {
  readonly parent: WindowDouble;
}

const PAGE: WindowDouble = {
  get parent() {
    return PAGE;
  },
};
const inside = (parent: WindowDouble): WindowDouble => ({parent});

/** A slot's element with one frame in GPT's container, as GPT builds it. */
const createElement = (contentWindow: WindowDouble) => {
  const container = {style: {} as Record<string, string>};
  const frame = {contentWindow, style: {} as Record<string, string>, parentElement: container};
  const element = {getElementsByTagName: () => [frame]} as unknown as Element;
  return {element, frame, container};
};

const setUp = () => {
  const frames = {top: inside(PAGE), side: inside(PAGE)};
  const top = createElement(frames.top);
  const side = createElement(frames.side);
  const bids = new Map(
    getBids({top: {hb_adid: 'AD1', w: 300, h: 250}}, 0).map((bid): [string, Bid] => [
      bid.adId,
      bid,
    ]),
  );
  const handed: string[] = [];
  const reports: string[] = [];
  let bringMarkup: (entries: Record<string, unknown>) => void = () => {};
  const markup = new Promise<Map<string, unknown>>((resolve) => {
    bringMarkup = (entries) => resolve(new Map(Object.entries(entries)));
  });
  const bridge = createBridge({
    bidFor: (adId) => bids.get(adId),
    elementsFor: (adId) => (adId === 'AD1' ? [top.element] : adId === 'AD2' ? [side.element] : []),
    markup,
    onHanded: (bid) => handed.push(bid.adId),
    onReport: (event) => reports.push(event),
  });
  const answers: unknown[] = [];
  const post = async (source: WindowDouble, data: unknown, withPort = true) => {
    const port = {postMessage: (answer: string) => answers.push(JSON.parse(answer))};
    const ports = withPort ? [port] : [];
    bridge({data, source, ports} as unknown as MessageEvent);
    await new Promise((resolve) => setTimeout(resolve));
  };
  return {frames, top, bids, handed, reports, bringMarkup, answers, post};
};

const request = (adId: string) => JSON.stringify({message: 'Prebid Request', adId});

test('a creative in the slot gets its markup, once', async () => {
  const {frames, top, bringMarkup, answers, handed, post} = setUp();
  bringMarkup({AD1: '<b>ad</b>'});
  await post(frames.top, request('AD1'));
  await post(frames.top, request('AD1'));
  expect(answers).toEqual([
    {message: 'Prebid Response', adId: 'AD1', ad: '<b>ad</b>', width: 300, height: 250},
  ]);
  expect(handed).toEqual(['AD1']);
  for (const {style} of [top.frame, top.container]) {
    expect(style).toEqual({width: '300px', height: '250px'});
  }
});

test('so does one in a frame of that frame', async () => {
  const {frames, bringMarkup, answers, post} = setUp();
  bringMarkup({AD1: 'ad'});
  await post(inside(inside(frames.top)), request('AD1'));
  expect(answers).toHaveLength(1);
});

test('a creative that is quicker than the markup waits for it', async () => {
  const {frames, bringMarkup, answers, post} = setUp();
  await post(frames.top, request('AD1'));
  expect(answers).toEqual([]);
  bringMarkup({AD1: 'ad'});
  await new Promise((resolve) => setTimeout(resolve));
  expect(answers).toHaveLength(1);
});

test('a bid that has gone meanwhile is not shown', async () => {
  const {frames, bids, bringMarkup, answers, handed, post} = setUp();
  await post(frames.top, request('AD1'));
  bids.clear();
  bringMarkup({AD1: 'ad'});
  await new Promise((resolve) => setTimeout(resolve));
  expect([answers, handed]).toEqual([[], []]);
});

test.each<[string, (f: Record<'top' | 'side', WindowDouble>) => WindowDouble, string, boolean]>([
  ['the page itself', () => PAGE, 'AD1', true],
  ['a frame outside every slot', () => inside(PAGE), 'AD1', true],
  ['a frame in another slot', (frames) => frames.side, 'AD1', true],
  ['an ad id that no bid has', (frames) => frames.side, 'AD2', true],
  ['a message without a port', (frames) => frames.top, 'AD1', false],
])('%s gets nothing', async (_, source, adId, withPort) => {
  const {frames, bringMarkup, answers, handed, post} = setUp();
  bringMarkup({AD1: 'ad', AD2: 'ad'});
  await post(source(frames), request(adId), withPort);
  expect([answers, handed]).toEqual([[], []]);
});

test('an endless chain of parents ends', async () => {
  const {bringMarkup, answers, post} = setUp();
  bringMarkup({AD1: 'ad'});
  let win = inside(PAGE);
  for (let i = 0; i < 1000; i++) win = inside(win);
  await post(win, request('AD1'));
  expect(answers).toEqual([]);
});

test('reports are taken from creatives inside the slot alone', async () => {
  const {frames, reports, post} = setUp();
  const report = JSON.stringify({message: 'Prebid Event', adId: 'AD1', event: 'adRenderSucceeded'});
  await post(frames.top, report, false);
  await post(frames.side, report, false);
  expect(reports).toEqual(['adRenderSucceeded']);
});
