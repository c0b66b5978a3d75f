import {describe, expect, test} from 'vitest';
import {type Billing, createBilling} from './create-billing.ts';
import type {Bid} from './page.ts';

const bid = (adId: string, burlOn: Bid['burlOn']): Bid => ({
  slotId: 'top',
  adId,
  targeting: {hb_adid: adId},
  w: 300,
  h: 250,
  notices: [`https://b.example/${adId}`],
  burlOn,
  expiresAt: Number.POSITIVE_INFINITY,
});

type Fact = keyof Billing;

describe.each<{burlOn: Bid['burlOn']; facts: Fact[]; fired: number}>([
  {burlOn: 'creative', facts: [], fired: 0},
  {burlOn: 'creative', facts: ['rendered'], fired: 0}, // the house ad has won
  {burlOn: 'creative', facts: ['handed'], fired: 0},
  {burlOn: 'creative', facts: ['rendered', 'rendered'], fired: 0},
  {burlOn: 'creative', facts: ['rendered', 'handed'], fired: 1},
  {burlOn: 'creative', facts: ['handed', 'rendered'], fired: 1},
  {burlOn: 'creative', facts: ['handed', 'rendered', 'rendered', 'handed'], fired: 1},
  {burlOn: 'render', facts: ['handed'], fired: 0},
  {burlOn: 'render', facts: ['rendered'], fired: 1},
  {burlOn: 'render', facts: ['rendered', 'handed', 'rendered'], fired: 1},
])('burl_on $burlOn after $facts', ({burlOn, facts, fired}) => {
  test(`fires ${fired} times`, () => {
    const urls: string[] = [];
    const won: string[] = [];
    const billing = createBilling(
      (url) => urls.push(url),
      ({adId}) => won.push(adId),
    );
    for (const fact of facts) billing[fact](bid('AD1', burlOn));
    expect(urls).toEqual(Array(fired).fill('https://b.example/AD1'));
    expect(won).toEqual(Array(fired).fill('AD1'));
  });
});

test('one bid’s creative does not bill another bid', () => {
  const urls: string[] = [];
  const billing = createBilling(
    (url) => urls.push(url),
    () => {},
  );
  billing.rendered(bid('AD1', 'creative'));
  billing.handed(bid('AD2', 'creative'));
  expect(urls).toEqual([]);
});
