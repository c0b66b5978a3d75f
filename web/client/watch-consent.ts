import type {TCData} from './page.ts';
import {watchTCF} from './watch-tcf.ts';

interface ConsentListener {
  /** The reader has said yes or no to what the auction needs. May come again. */
  onAnswer(yes: boolean): void;
  /** Nobody will ask: no CMP has shown up by load. */
  onNone(): void;
}

/** Hears from the CMP what the reader says to the auction. */
export const watchConsent = (win: Window, listener: ConsentListener): void => {
  watchTCF(win, {
    onAnswer: (data) => listener.onAnswer(isYes(data)),
    onNone: listener.onNone,
  });
};

/** The gate's own rule: Purpose 1, storage, and Purpose 2, choosing ads. */
const isYes = (data: TCData): boolean =>
  data.gdprApplies === false || !!(data.purpose?.consents?.[1] && data.purpose.consents[2]);
