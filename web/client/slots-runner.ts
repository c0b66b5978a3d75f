// The runner of hole 1: hands the slots to the page and loads the client, and the
// reader plane's script where there are magazine slots. Built to constant text,
// whose hash can stand in a Content-Security-Policy.
import {type ClientData, insertScripts, type ReaderData} from './insert-scripts.ts';
import {keepSpace} from './keep-space.ts';
import {runBlock} from './run-block.ts';

runBlock('slots', ({slots, skip, client, reader}, nonce) => {
  window.__ts_ad_slots = slots;
  // A bot gets the slots alone.
  insertScripts(client as ClientData | undefined, reader as ReaderData | undefined, {skip, nonce});
  if (reader) keepSpace(slots as Parameters<typeof keepSpace>[0]);
});
