import type {TCData} from './page.ts';
import {watchTCF} from './watch-tcf.ts';

interface ConsentListener {
  /** The reader has answered, or nobody will ask: no CMP has shown up by load. */
  onAnswer(): void;
  /** The reader has refused what the auction needs. May come again. */
  onRefusal(): void;
}

/** Hears from the CMP what the reader says to the auction. */
export const watchConsent = (win: Window, listener: ConsentListener): void => {
  watchTCF(win, {
    onAnswer(data) {
      if (isRefusal(data)) listener.onRefusal();
      listener.onAnswer();
    },
    onNone: listener.onAnswer,
  });
};

/** The gate's own rule: Purpose 1, storage, and Purpose 2, choosing ads. */
const isRefusal = (data: TCData): boolean =>
  data.gdprApplies !== false && !(data.purpose?.consents?.[1] && data.purpose.consents[2]);
