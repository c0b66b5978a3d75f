import type {Targeting} from './page.ts';

/** Sets key-values on a slot; null takes a key away. */
export const setTargeting = (
  slot: googletag.Slot,
  targeting: Readonly<Record<string, Targeting[string] | null>>,
): void => {
  if (typeof slot.setConfig === 'function') {
    slot.setConfig({targeting});
    return;
  }
  for (const [key, value] of Object.entries(targeting)) {
    if (value === null) slot.clearTargeting(key);
    else slot.setTargeting(key, value);
  }
};
