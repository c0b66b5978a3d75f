import type {ClientScript} from './get-settings.ts';
import type {ScriptURLPolicy} from './page.ts';

/** The member `client` of the data block of hole 1. */
export interface ClientData {
  readonly src: string;
  readonly gpt: string;
  readonly gpt_url: string;
  readonly init: string;
}

/**
 * Inserts the client's script element, with its settings on it. The URL is
 * absolute from the page's origin, since a page may have a <base href>.
 */
export const insertClient = (
  {src, gpt, gpt_url, init}: ClientData,
  {skip, nonce}: {skip: unknown; nonce: string},
): void => {
  const script: ClientScript = document.createElement('script');
  const policy = getPolicy();
  script.async = true;
  script.nonce = nonce;
  script.src = policy.createScriptURL(location.origin + src) as string;
  script.onerror = () => script.remove();
  script.gptUrl = policy.createScriptURL(gpt_url);
  Object.assign(script.dataset, {gpt, init, gptUrl: gpt_url, at: performance.now()});
  if (skip) script.dataset.skip = skip as string;
  document.head.appendChild(script);
};

/**
 * Where Trusted Types are enforced a script's URL must come out of a policy. A
 * site that names its policies names "deckle" once, so the one we make has to
 * serve gpt.js as well; nobody else ever gets hold of it.
 */
const getPolicy = (): ScriptURLPolicy => {
  const plain = {createScriptURL: (url: string) => url};
  try {
    return window.trustedTypes!.createPolicy('deckle', plain);
  } catch {
    // No Trusted Types here, or none for us: then the browser refuses the plain URL.
    return plain;
  }
};
