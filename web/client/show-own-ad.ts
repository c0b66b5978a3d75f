import {isRecord} from './is-record.ts';
import type {Bid} from './page.ts';
import {safely} from './safely.ts';

/** Where ads stand that we render: package web, FramePath. */
const FRAME = '/_deckle/frame';

export interface OwnAdOptions {
  readonly bid: Bid;
  readonly markup: string;
  /** The ad has loaded. */
  shown(): void;
  /** The page's policy does not let our frame in. */
  forbidden(): void;
}

/**
 * Shows an ad without an ad server, in a frame of our own inside `element`: the
 * frame says when it is there, is given the markup, and loads once more as the ad.
 */
export const showOwnAd = (
  win: Window,
  element: HTMLElement,
  {bid, markup, shown, forbidden}: OwnAdOptions,
): void => {
  const frame = win.document.createElement('iframe');
  const url = win.location.origin + FRAME;
  const onMessage = safely(({source, data}: MessageEvent) => {
    if (source !== frame.contentWindow || !isRecord(data) || data.deckleFrame !== 'ready') return;
    stop();
    frame.addEventListener('load', safely(shown), {once: true});
    frame.contentWindow?.postMessage({deckleAd: markup}, '*'); // its origin is opaque
  });
  const onViolation = safely(({blockedURI, effectiveDirective}: SecurityPolicyViolationEvent) => {
    if (blockedURI !== url || !/^(frame|child|default)-src/.test(effectiveDirective)) return;
    stop();
    frame.remove();
    forbidden();
  });
  const stop = () => {
    win.removeEventListener('message', onMessage);
    win.document.removeEventListener('securitypolicyviolation', onViolation);
  };
  win.addEventListener('message', onMessage);
  win.document.addEventListener('securitypolicyviolation', onViolation);
  frame.title = 'Advertisement';
  frame.scrolling = 'no';
  frame.style.cssText = 'border:0;display:block';
  if (bid.w) frame.width = String(bid.w);
  if (bid.h) frame.height = String(bid.h);
  frame.src = url;
  element.appendChild(frame);
};
