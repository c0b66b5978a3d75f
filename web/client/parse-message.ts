import {isRecord} from './is-record.ts';

/** What Prebid Universal Creative posts to the page, as far as we answer it. */
export interface CreativeMessage {
  readonly message: 'Prebid Request' | 'Prebid Event';
  readonly adId: string;
  /** Of a Prebid Event: what became of the creative. */
  readonly event?: 'adRenderSucceeded' | 'adRenderFailed';
}

/** More than any such message needs; windows post each other large strings. */
const MAX_LENGTH = 4096;

/**
 * The message in `data`, if it is one. Any frame on the page can post anything,
 * and most of what arrives is meant for others.
 */
export const parseMessage = (data: unknown): CreativeMessage | undefined => {
  if (typeof data !== 'string' || data.length > MAX_LENGTH || !data.includes('"Prebid ')) {
    return undefined;
  }
  const {message, adId, event} = parse(data);
  if (typeof adId !== 'string') return undefined;
  if (message === 'Prebid Request') return {message, adId};
  if (message !== 'Prebid Event') return undefined;
  if (event !== 'adRenderSucceeded' && event !== 'adRenderFailed') return undefined;
  return {message, adId, event};
};

const parse = (text: string): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
};
