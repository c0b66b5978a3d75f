import {isRecord} from '../is-record.ts';
import {readAnswer} from './read-answer.ts';
import type {Answer} from './types.ts';

/** A batch that takes longer finds no reader any more. */
const LIMIT_MS = 10_000;

/** Asks for a batch. An error's message says why there is no answer. */
export const ask = async (base: string, body: string): Promise<Answer | undefined> => {
  const signal = AbortSignal.timeout(LIMIT_MS);
  const init = {__proto__: null, method: 'POST', body, credentials: 'omit', signal};
  const answer = await fetch(`${base}/v1/serve/batch`, init as RequestInit);
  if (answer.status === 204) return undefined; // the site is suspended
  if (!answer.ok) throw new Error(`status_${answer.status}`);
  const value: unknown = await answer.json().catch(() => 0);
  if (!isRecord(value)) throw new Error('no_answer'); // a proxy's page of HTML, say
  return readAnswer(value, base);
};
