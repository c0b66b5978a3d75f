import type {TCData} from './page.ts';
import {safely} from './safely.ts';

interface ConsentListener {
  /** The reader has answered, or nobody will ask: no CMP has shown up by load. */
  onAnswer(): void;
  /** The reader has refused what the auction needs. May come again. */
  onRefusal(): void;
}

/**
 * Listens to the CMP through IAB's TCF v2 API, as soon as a script has put it
 * there. What a listener never hears is an answer that did not come: a dialogue
 * still open, or a CMP that fails, leaves the question open.
 */
export const watchConsent = (win: Window, listener: ConsentListener): void => {
  const hear = safely((data: TCData | null, success: boolean) => {
    if (!success || !data || !isAnswer(data)) return;
    if (isRefusal(data)) listener.onRefusal();
    listener.onAnswer();
  });
  const attach = safely(() => {
    if (typeof win.__tcfapi === 'function') {
      win.document.removeEventListener('readystatechange', attach);
      win.__tcfapi('addEventListener', 2, hear);
    } else if (win.document.readyState === 'complete') {
      listener.onAnswer();
    }
  });
  win.document.addEventListener('readystatechange', attach);
  attach();
};

/** "cmpuishown" is the remaining status: the reader is being asked. */
const isAnswer = (data: TCData): boolean =>
  data.gdprApplies === false ||
  data.eventStatus === 'tcloaded' ||
  data.eventStatus === 'useractioncomplete';

/** The gate's own rule: Purpose 1, storage, and Purpose 2, choosing ads. */
const isRefusal = (data: TCData): boolean =>
  data.gdprApplies !== false && !(data.purpose?.consents?.[1] && data.purpose.consents[2]);
