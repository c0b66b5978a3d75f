import {isRecord} from './is-record.ts';
import type {Slot, Targeting} from './page.ts';

/**
 * The GPT slots of `window.__ts_ad_slots`. Entries that are not as the edge
 * writes them (a page may have put its own there) and other kinds are left out.
 */
export const getSlots = (value: unknown): Slot[] =>
  Array.isArray(value) ? value.map(getSlot).filter((slot): slot is Slot => slot !== undefined) : [];

const getSlot = (value: unknown): Slot | undefined => {
  if (!isRecord(value) || value.kind !== 'gpt') return undefined;
  const {id, gam_unit_path: unitPath, div_id: divId, formats, targeting, deadline_ms} = value;
  const own = value.ad_server === 'none';
  const gamUnitPath = own ? '' : unitPath;
  if (typeof id !== 'string' || typeof gamUnitPath !== 'string' || typeof divId !== 'string') {
    return undefined;
  }
  return {
    id,
    gamUnitPath,
    divId,
    formats: Array.isArray(formats) ? formats : [],
    targeting: isRecord(targeting) ? (targeting as Targeting) : {},
    own,
    deadlineMs: typeof deadline_ms === 'number' ? deadline_ms : 0,
  };
};
