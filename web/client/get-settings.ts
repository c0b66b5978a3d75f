import type {ScriptURL, Settings} from './page.ts';

/**
 * The client's script element as the runner of hole 1 makes it: with an own
 * property gptUrl where Trusted Types want one.
 */
export type ClientScript = HTMLScriptElement & {gptUrl?: ScriptURL};

/** The settings on the client's script element; defaults where there is none. */
export const getSettings = (script: ClientScript | null): Settings => {
  const data: DOMStringMap = script?.dataset ?? {};
  return {
    skip: data.skip ?? '',
    gpt: data.gpt === 'load' ? 'load' : 'page',
    gptUrl: script?.gptUrl ?? data.gptUrl ?? '',
    init: data.init === 'dom' || data.init === 'load' ? data.init : 'early',
    bids: data.bids === 'fetch' ? 'fetch' : 'inline',
    spa: data.spa === 'true',
    parsedAt: Number(data.at ?? performance.now()),
    nonce: script?.nonce ?? '',
  };
};
