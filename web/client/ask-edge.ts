import {isRecord} from './is-record.ts';

/** No auction takes longer; an answer that does finds a page that has gone on. */
const LIMIT_MS = 5000;

/**
 * Asks one of the edge's own paths, by POST where there is a body. Undefined for
 * whatever is not a JSON object: the page then goes on without.
 */
export const askEdge = async (
  path: string,
  body?: string,
  abort = new AbortController(),
): Promise<Record<string, unknown> | undefined> => {
  const timer = setTimeout(() => abort.abort(), LIMIT_MS);
  try {
    const answer = await fetch(location.origin + path, {
      method: body === undefined ? 'GET' : 'POST',
      body: body ?? null,
      // Where a browser does not say who asks, this does: no other site may set it.
      headers: {'X-Deckle': '1'},
      cache: 'no-store',
      signal: abort.signal,
    });
    const value: unknown = answer.ok ? await answer.json() : undefined;
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
};
