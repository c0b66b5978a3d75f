import {readPin} from './read-pin.ts';
import {changeRows, deleteRows, readRows, type Schema} from './transact.ts';
import type {Pin} from './types.ts';

/**
 * The database that readers have had since the first script. It stays at version
 * 1, so that an older script can still open it.
 */
const PINS: Schema = {name: 'promovolve-dogear', stores: {pins: 'slotId'}};

/** The pins that hold at `now`, newest first. Those that have expired are deleted. */
export const readPins = async (win: Window, now: number): Promise<Pin[]> => {
  const rows = await readRows(win, PINS, 'pins');
  const pins = rows.map(readPin).filter((pin): pin is Pin => pin !== undefined);
  const holds = (pin: Pin) => pin.expiresAt > now;
  if (!pins.every(holds)) void deletePins(win, (pin) => !holds(pin));
  return pins.filter(holds).sort((a, b) => b.foldedAt - a.foldedAt);
};

/** Writes a pin; it replaces what its slot had. */
export const writePin = (win: Window, pin: Pin): Promise<unknown> =>
  changeRows(win, PINS, 'pins', (store) => store.put(pin));

/**
 * Deletes the pins that are `gone`. Each is looked at once more as it is now:
 * another tab may have folded something else in its slot meanwhile.
 */
export const deletePins = (win: Window, gone: (pin: Pin) => boolean): Promise<unknown> =>
  changeRows(win, PINS, 'pins', (store) =>
    deleteRows(store, (row) => {
      const pin = readPin(row);
      return pin !== undefined && gone(pin);
    }),
  );
