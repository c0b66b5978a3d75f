// The reader plane's script: loaded by the runner of hole 1 where a page has
// magazine slots, or by a page's own <script async src="…/deckle.js" data-pub="…">.
import {safely} from '../safely.ts';
import {start} from './start.ts';

safely(() => {
  const script = document.currentScript as HTMLScriptElement | null;
  if (!script) return;
  const {pub = '', skip = ''} = script.dataset;
  const base = new URL(script.src).origin;
  // The page finds the origin's elements and no others; a tag of its own stays.
  if (script.src !== `${base}/_deckle/deckle.js`) script.remove();
  start(window, {pub, skip, base});
})();
