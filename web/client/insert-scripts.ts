import type {ClientScript} from './get-settings.ts';
import type {ScriptURLPolicy} from './page.ts';

/** The member `client` of the data block of hole 1. */
export interface ClientData {
  readonly src: string;
  readonly gpt: string;
  readonly gpt_url: string;
  readonly init: string;
  readonly bids?: string;
  readonly spa?: boolean;
}

/** Its member `reader`, which is there where the page has magazine slots. */
export interface ReaderData {
  readonly src: string;
  readonly pub: string;
}

/**
 * Inserts the scripts' elements, with their settings on them: the client, and the
 * reader plane's. Their URLs are absolute from the page's origin, since a page may
 * have a <base href>.
 */
export const insertScripts = (
  client: ClientData | undefined,
  reader: ReaderData | undefined,
  {skip, nonce}: {skip: unknown; nonce: string},
): void => {
  const policy = getPolicy();
  const insert = (src: string, data: object, gptUrl?: string) => {
    const script: ClientScript = document.createElement('script');
    script.async = true;
    script.nonce = nonce;
    script.src = policy.createScriptURL(location.origin + src) as string;
    script.onerror = () => script.remove();
    if (gptUrl) script.gptUrl = policy.createScriptURL(gptUrl);
    Object.assign(script.dataset, data, skip && {skip});
    document.head.appendChild(script);
  };
  // First, since its batch is on its way while the client is being loaded.
  if (reader) insert(reader.src, {pub: reader.pub});
  if (client) {
    const gptUrl = client.gpt_url;
    const data = Object.assign({}, client, {gptUrl, at: performance.now()});
    insert(client.src, data, gptUrl);
  }
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
