import {isRecord} from './is-record.ts';

/**
 * Reads and removes the data block `name` ("bids" or "markup") that the edge
 * wrote. Undefined when there is none, or when only a part of it has been
 * parsed: no beginning of a JSON object is itself JSON.
 */
export const takeBlock = (doc: Document, name: string): Record<string, unknown> | undefined => {
  for (const script of Array.from(doc.getElementsByTagName('script'))) {
    if (script.dataset.deckle !== name || script.type !== 'application/json') continue;
    const value = parse(script.text);
    if (!isRecord(value)) continue;
    script.remove();
    return value;
  }
  return undefined;
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
