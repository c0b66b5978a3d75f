import {readAnswer} from './read-answer.ts';
import type {Answer} from './types.ts';

/** A batch that takes longer finds no reader any more. */
const LIMIT_MS = 10_000;

/** Asks for a batch. An error's message says why there is no answer. */
export const ask = async (base: string, body: string): Promise<Answer | undefined> => {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), LIMIT_MS);
  try {
    const answer = await fetch(`${base}/v1/serve/batch`, {
      method: 'POST',
      body,
      credentials: 'omit',
      signal: abort.signal,
    });
    if (answer.status === 204) return undefined; // the site is suspended
    if (!answer.ok) throw new Error(`status_${answer.status}`);
    return readAnswer(await answer.json(), base);
  } finally {
    clearTimeout(timer);
  }
};
