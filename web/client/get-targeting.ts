/** The first value of a slot's key, by whichever interface it was set; '' when it is not. */
export const getTargeting = (slot: googletag.Slot, key: string): string => {
  const configured =
    typeof slot.getConfig === 'function' ? slot.getConfig('targeting').targeting?.[key] : undefined;
  const value = configured ?? slot.getTargeting?.(key);
  return (Array.isArray(value) ? value[0] : value) ?? '';
};
