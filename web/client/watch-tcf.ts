import type {TCData} from './page.ts';
import {safely} from './safely.ts';

export interface TCFListener {
  /** The reader has answered. May come again. */
  onAnswer(data: TCData): void;
  /** The reader is being asked. */
  onQuestion?(): void;
  /** Nobody will ask: no CMP has shown up by load. */
  onNone(): void;
}

/**
 * Listens to the CMP through IAB's TCF v2 API, as soon as a script has put it
 * there. What a listener never hears is an answer that did not come: a dialogue
 * still open, or a CMP that fails, leaves the question open.
 */
export const watchTCF = (win: Window, listener: TCFListener): void => {
  const hear = safely((data: TCData | null, success: boolean) => {
    if (!success || !data) return;
    if (isAnswer(data)) listener.onAnswer(data);
    else if (data.eventStatus === 'cmpuishown') listener.onQuestion?.();
  });
  const attach = safely(() => {
    if (typeof win.__tcfapi === 'function') {
      win.document.removeEventListener('readystatechange', attach);
      win.__tcfapi('addEventListener', 2, hear);
    } else if (win.document.readyState === 'complete') {
      listener.onNone();
    }
  });
  win.document.addEventListener('readystatechange', attach);
  attach();
};

const isAnswer = (data: TCData): boolean =>
  data.gdprApplies === false ||
  data.eventStatus === 'tcloaded' ||
  data.eventStatus === 'useractioncomplete';
