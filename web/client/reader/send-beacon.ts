import {isFinal, request} from './request.ts';

/** Pauses between attempts, within the three minutes that a beacon's token has. */
const PAUSES_MS = [1000, 5000, 15_000, 45_000, 90_000];

/**
 * Fires a beacon, also while the page is being left. One that was not heard is
 * fired again while its token is valid, and at once when the connection comes
 * back: the server counts a token once, however often it comes. Never throws.
 */
export const sendBeacon = async (win: Window, url: string): Promise<void> => {
  for (const pause of PAUSES_MS) {
    if (isFinal(await request(url))) return;
    await untilOnline(win, pause);
  }
  await request(url);
};

const untilOnline = (win: Window, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      win.removeEventListener('online', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    win.addEventListener('online', end);
  });
