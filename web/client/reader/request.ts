/**
 * The status of a request, 0 where there was no answer. It outlives the page,
 * carries no cookies, and its body, where it has one, is sent as text, so that no
 * preflight is needed. Never throws.
 */
export const request = async (url: string, body?: string): Promise<number> => {
  try {
    const {status} = await fetch(url, {
      __proto__: null, // what a page has put on Object.prototype is no body of ours
      ...(body === undefined ? {} : {method: 'POST', body}),
      keepalive: true,
      credentials: 'omit',
      cache: 'no-store',
      referrerPolicy: 'strict-origin-when-cross-origin',
    } as RequestInit);
    return status;
  } catch {
    return 0; // offline, forbidden by the page's policy, or fetch is not what it was
  }
};

/** Whether a status is the server's last word. Anything else may be told again. */
export const isFinal = (status: number): boolean => status > 0 && status !== 429 && status < 500;
