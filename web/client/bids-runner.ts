// The runner of hole 2: hands the bids to the page, and to the client where it
// is there already; a client that comes later finds them in window.__ts_bids.
import {runBlock} from './run-block.ts';

runBlock('bids', (bids) => {
  window.__ts_bids = bids;
  window.__tsAdInit?.(bids);
});
