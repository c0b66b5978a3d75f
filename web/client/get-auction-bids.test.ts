import {expect, test} from 'vitest';
import {getAuctionBids} from './get-auction-bids.ts';
import {getBids} from './get-bids.ts';

const response = {
  id: 'r',
  cur: 'USD',
  seatbid: [
    {
      seat: 'kargo',
      bid: [
        {
          id: '1',
          impid: 'top',
          price: 2.5,
          adm: '<b>',
          w: 300,
          h: 250,
          exp: 60,
          burl: 'https://b.example/',
          ext: {targeting: {hb_pb: '2.50', hb_adid: 'AD1'}},
        },
      ],
    },
  ],
};

test('winners are as those of a page', () => {
  const {bids, markup} = getAuctionBids(response);
  expect(markup).toEqual({AD1: '<b>'});
  expect(getBids(bids, 0)).toEqual([
    {
      slotId: 'top',
      adId: 'AD1',
      targeting: {hb_pb: '2.50', hb_adid: 'AD1'},
      w: 300,
      h: 250,
      notices: ['https://b.example/'],
      burlOn: 'creative',
      expiresAt: 60_000,
    },
  ]);
});

test.each([
  [undefined],
  [{}],
  [{seatbid: null}],
  [{seatbid: [null, 7, {bid: 'x'}, {bid: [null, {}, {impid: 'top'}, {impid: 'top', ext: 1}]}]}],
  [{seatbid: [{bid: [{impid: 7, ext: {targeting: {hb_adid: 'AD1'}}}]}]}],
  [{seatbid: [{bid: [{impid: 'top', ext: {targeting: {hb_adid: 7}}}]}]}],
])('nobody wins in %j', (answer) => {
  expect(getAuctionBids(answer)).toEqual({bids: {}, markup: {}});
});
