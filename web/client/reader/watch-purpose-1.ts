import {watchTCF} from '../watch-tcf.ts';
import {STORAGE_LIMIT_MS} from './transact.ts';

/** Whether counts and recents may be kept in this browser: TCF Purpose 1. */
export interface Purpose1 {
  /**
   * May what is there be read now? Waits for a CMP that is there, 400 ms at most
   * and not while the reader is still being asked.
   */
  mayRead(): Promise<boolean>;
  /** May this visit be remembered? Settles with the reader's answer, if one comes. */
  mayKeep(): Promise<boolean>;
}

/**
 * Hears what the reader says of Purpose 1; `refused` is called whenever that is
 * no. Without a CMP in the page counts are kept, unless the edge has read a
 * refusal (`skip` is no_consent).
 *
 * A CMP may come after the first batch. What can be read then was kept with
 * permission on an earlier page, and is deleted as soon as that is withdrawn.
 */
export const watchPurpose1 = (win: Window, skip: string, refused: () => void): Purpose1 => {
  const withoutCMP = skip !== 'no_consent';
  let allowed: boolean | undefined;
  let asked = () => {};
  const asking = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const answered = new Promise<void>((resolve) => {
    watchTCF(win, {
      onAnswer({gdprApplies, purpose}) {
        allowed = gdprApplies === false || purpose?.consents?.[1] === true;
        if (!allowed) refused();
        resolve();
      },
      onQuestion: asked,
      onNone() {
        allowed ??= withoutCMP;
        resolve();
      },
    });
  });
  return {
    async mayRead() {
      if (typeof win.__tcfapi !== 'function') return allowed ?? withoutCMP;
      const limit = new Promise<void>((resolve) => setTimeout(resolve, STORAGE_LIMIT_MS));
      await Promise.race([answered, asking, limit]);
      return allowed === true;
    },
    mayKeep: () => answered.then(() => allowed === true),
  };
};
