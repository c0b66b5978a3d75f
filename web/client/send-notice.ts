/**
 * Fires one of a bidder's notice URLs at most once, also while the page is being
 * left. Never throws.
 *
 * GET, because that is what burl has been in practice since it was a pixel;
 * sendBeacon can only POST. Without cookies: a notice says that an ad was shown,
 * not to whom. A failure is not tried again, since a bidder that has counted and
 * then reset the connection would count twice.
 */
export const sendNotice = (url: string): void => {
  try {
    void fetch(url, {
      mode: 'no-cors',
      keepalive: true,
      credentials: 'omit',
      referrerPolicy: 'strict-origin-when-cross-origin',
      cache: 'no-store',
    }).catch(() => {});
  } catch {
    // No fetch here, or the page has replaced it by something that throws.
  }
};
