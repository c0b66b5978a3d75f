import {connectAdServer} from './connect-ad-server.ts';
import type {AdServer} from './create-ad-server.ts';
import {createBids} from './create-bids.ts';
import {createCommands} from './create-commands.ts';
import {getSlots} from './get-slots.ts';
import {isFromHistory} from './is-from-history.ts';
import {loadGPT} from './load-gpt.ts';
import type {Settings, Slot} from './page.ts';
import {receiveBids} from './receive-bids.ts';
import {safely} from './safely.ts';
import {watchDocument} from './watch-document.ts';
import {whenInitialisable} from './when-initialisable.ts';
import {whenPermitted} from './when-permitted.ts';

/** How long after DOMContentLoaded a slot's element may still be created. */
const ELEMENT_GRACE_MS = 2000;

/**
 * The page plane in the browser. A slot's ad is requested when it may be, when
 * its bid is there or can no longer come, and when its element is in the page.
 * Started twice, it does nothing the second time.
 */
export const start = (win: Window, settings: Settings): void => {
  const count = createCommands(win);
  if (!count) return;

  const bids = createBids(Date.now);
  const adServer = connectAdServer(win, bids, count);
  const forgetBids = () => {
    bids.close();
    adServer.withdraw();
    win.__ts_bids = {};
  };
  if (isFromHistory(win)) bids.close();
  win.addEventListener('pageshow', ({persisted}) => {
    if (persisted) forgetBids();
  });

  const permitted = new Promise<void>((done) => {
    whenPermitted(win, settings.skip, {done, refused: forgetBids});
  }).then(
    safely(() => {
      if (settings.gpt === 'load') loadGPT(win, settings);
    }),
  );
  const initialisable = new Promise<void>((done) => {
    whenInitialisable(win, settings.init, done);
  });
  const waiting = {slots: getSlots(win.__ts_ad_slots), parsedAt: settings.parsedAt};
  const {settled, deliver} = receiveBids(win, waiting, bids.receive);

  const known = new Set<string>();
  win.__tsAdInit = safely((value?: unknown) => {
    if (value !== undefined) deliver(value);
    const slots = getSlots(win.__ts_ad_slots).filter(({id}) => !known.has(id) && known.add(id));
    Promise.all([permitted, initialisable, settled])
      .then(() => requestWhenPresent(win, slots, adServer))
      .catch(() => {}); // the page's error reports are not ours to fill
  });
  win.__tsAdInit();
};

/** Requests slots as their elements appear, those that appear together in one request. */
const requestWhenPresent = (win: Window, slots: readonly Slot[], adServer: AdServer): void => {
  let missing = slots;
  watchDocument(win, ELEMENT_GRACE_MS, () => {
    const isPresent = ({divId}: Slot) => win.document.getElementById(divId) !== null;
    const present = missing.filter(isPresent);
    missing = missing.filter((slot) => !present.includes(slot));
    if (present.length) adServer.request(present);
    return missing.length === 0;
  });
};
