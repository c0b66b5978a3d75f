/** Whether display() registers slots only, and refresh() alone requests ads. */
export const isInitialLoadDisabled = (gpt: typeof googletag): boolean =>
  (typeof gpt.getConfig === 'function' &&
    gpt.getConfig('disableInitialLoad').disableInitialLoad === true) ||
  gpt.pubads().isInitialLoadDisabled?.() === true;
