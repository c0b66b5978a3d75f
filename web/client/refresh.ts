import type {AdServer} from './create-ad-server.ts';
import type {Stock} from './create-stock.ts';
import {getSlots} from './get-slots.ts';

/**
 * Gets new ads for the slots with these codes, or for all: takes the old bids'
 * targeting away, asks for new bids, and requests the slots with those that came.
 */
export const refresh = async (
  win: Window,
  {adServer, stock}: {adServer: AdServer; stock: Stock},
  codes?: readonly string[],
): Promise<void> => {
  if (stock.isRefused()) return;
  const slots = getSlots(win.__ts_ad_slots).filter(({id}) => !codes || codes.includes(id));
  adServer.withdraw(slots);
  await stock.request(
    slots.map(({id, formats}) => ({code: id, mediaTypes: {banner: {sizes: formats}}})),
  );
  if (!stock.isRefused()) adServer.refresh(slots);
};
