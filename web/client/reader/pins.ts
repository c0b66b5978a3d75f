import {readPin} from './read-pin.ts';
import {type Schema, transact} from './transact.ts';
import type {Pin} from './types.ts';

/**
 * The database that readers have had since the first script. It stays at version
 * 1, so that an older script can still open it.
 */
const PINS: Schema = {name: 'promovolve-dogear', stores: {pins: 'slotId'}};

/** The pins that hold at `now`, newest first. Those that have expired are deleted. */
export const readPins = async (win: Window, now: number): Promise<Pin[]> => {
  const rows =
    (await transact(win, PINS, 'readonly', (transaction) => {
      const all = transaction.objectStore('pins').getAll();
      return () => all.result as unknown[];
    })) ?? [];
  const pins = rows.map(readPin).filter((pin): pin is Pin => pin !== undefined);
  const holds = (pin: Pin) => pin.expiresAt > now;
  if (!pins.every(holds)) void deletePins(win, (pin) => !holds(pin));
  return pins.filter(holds).sort((a, b) => b.foldedAt - a.foldedAt);
};

/** Writes a pin; it replaces what its slot had. */
export const writePin = (win: Window, pin: Pin): Promise<unknown> =>
  transact(win, PINS, 'readwrite', (transaction) => {
    transaction.objectStore('pins').put(pin);
    return () => true;
  });

/**
 * Deletes the pins that are `gone`. Each is looked at once more as it is now:
 * another tab may have folded something else in its slot meanwhile.
 */
export const deletePins = (win: Window, gone: (pin: Pin) => boolean): Promise<unknown> =>
  transact(win, PINS, 'readwrite', (transaction) => {
    const store = transaction.objectStore('pins');
    const all = store.getAll();
    all.onsuccess = () => {
      for (const row of all.result as unknown[]) {
        const pin = readPin(row);
        if (pin && gone(pin)) store.delete(pin.slotId);
      }
    };
    return () => true;
  });
