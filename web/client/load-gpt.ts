import type {Settings} from './page.ts';

/** Loads gpt.js, unless it is loaded or the page already loads it. */
export const loadGPT = (win: Window, {gptUrl, nonce}: Settings): void => {
  const doc = win.document;
  const url = String(gptUrl);
  const loads = Array.from(doc.getElementsByTagName('script')).some(({src}) => src === url);
  if (!url || loads || win.googletag?.apiReady) return;
  const script = doc.createElement('script');
  script.async = true;
  script.nonce = nonce;
  script.src = gptUrl as string;
  doc.head.append(script);
};
