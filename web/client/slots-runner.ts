// The runner of hole 1: hands the slots to the page and loads the client. Built
// to constant text, whose hash can stand in a Content-Security-Policy.
import {type ClientData, insertClient} from './insert-client.ts';
import {runBlock} from './run-block.ts';

runBlock('slots', ({slots, skip, client}, nonce) => {
  window.__ts_ad_slots = slots;
  // A bot gets the slots alone.
  if (client) insertClient(client as ClientData, {skip, nonce});
});
