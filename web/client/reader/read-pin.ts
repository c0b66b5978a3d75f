import {isRecord} from '../is-record.ts';
import type {Pin} from './types.ts';

const ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Whether `value` can be the id of a slot, a creative or a campaign. */
export const isId = (value: unknown): value is string =>
  typeof value === 'string' && ID.test(value);

/** A row of the store `pins`, or undefined where it is not one that we can use. */
export const readPin = (row: unknown): Pin | undefined => {
  if (!isRecord(row)) return undefined;
  const {slotId, creativeId, page, foldedAt, expiresAt} = row;
  if (!isId(slotId) || !isId(creativeId) || !isTime(foldedAt) || !isTime(expiresAt)) {
    return undefined;
  }
  const isPage = typeof page === 'number' && page >= 0 && page < 100;
  return {slotId, creativeId, page: isPage ? Math.floor(page) : 0, foldedAt, expiresAt};
};

const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);
