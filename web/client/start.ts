import {connectAdServer} from './connect-ad-server.ts';
import {createEvents} from './create-events.ts';
import {createStock} from './create-stock.ts';
import {getSlots} from './get-slots.ts';
import {isFromHistory} from './is-from-history.ts';
import {loadGPT} from './load-gpt.ts';
import type {Settings} from './page.ts';
import {receiveBids} from './receive-bids.ts';
import {refresh} from './refresh.ts';
import {requestWhenPresent} from './request-when-present.ts';
import {safely} from './safely.ts';
import {takeCommands} from './take-commands.ts';
import {watchPath} from './watch-path.ts';
import {whenInitialisable} from './when-initialisable.ts';

/**
 * The page plane in the browser. A slot's ad is requested when it may be, when
 * its bid is there or can no longer come, and when its element is in the page.
 * Started twice, it does nothing the second time.
 */
export const start = (win: Window, settings: Settings): void => {
  if (win.deckle?.counts) return;
  const counts: Record<string, number> = {};
  const {on, emit} = createEvents();
  const stock = createStock(win, {emit, onForget: () => adServer.withdraw()});
  const adServer = connectAdServer(win, stock, {counts, emit});

  // A page out of the browser's store has bids that were used when it was here before.
  const fromHistory = isFromHistory(win);
  const asks = settings.skip || settings.bids === 'fetch' || fromHistory;
  const permitted = stock.permit(settings.skip);
  const waiting = {slots: getSlots(win.__ts_ad_slots), parsedAt: settings.parsedAt};
  const received = receiveBids(win, waiting, asks ? () => {} : stock.receive);
  const ready = Promise.all([
    permitted,
    asks ? permitted.then((yes) => yes && stock.obtain()) : received.settled,
    new Promise<void>((done) => {
      whenInitialisable(win, settings.init, done);
    }),
  ]);
  if (settings.gpt === 'load') permitted.then(safely(() => loadGPT(win, settings)));

  let known = new Set<string>();
  const init = safely((value?: unknown) => {
    if (value !== undefined) received.deliver(value);
    const mine = known; // another set: the page has gone on
    ready
      .then(() => {
        const slots = getSlots(win.__ts_ad_slots).filter(({id}) => !mine.has(id) && mine.add(id));
        requestWhenPresent(win, slots, {adServer, isGone: () => mine !== known});
      })
      .catch(() => {}); // the page's error reports are not ours to fill
  });
  win.__tsAdInit = init;
  win.addEventListener('pageshow', ({persisted}) => {
    if (persisted) stock.forget();
  });
  if (settings.spa) {
    watchPath(win, () => {
      known = new Set();
      win.__ts_ad_slots = [];
      stock.forget();
      adServer.leave();
      permitted
        .then(stock.obtain)
        .then((current) => current && init())
        .catch(() => {});
    });
  }
  takeCommands(win, {
    counts,
    on,
    requestBids: stock.request,
    refresh: (codes) => refresh(win, {adServer, stock}, codes),
    consent: stock.consent,
  });
  init();
};
