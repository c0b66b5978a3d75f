// The client script: what the runner of hole 1 loads into every page with slots.
import {getSettings} from './get-settings.ts';
import {safely} from './safely.ts';
import {start} from './start.ts';

safely(() => {
  const script = document.currentScript as HTMLScriptElement | null;
  const settings = getSettings(script);
  // The page finds the origin's elements and no others.
  script?.remove();
  start(window, settings);
})();
