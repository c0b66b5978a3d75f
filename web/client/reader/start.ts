import {takeCommands} from '../take-commands.ts';
import {whenParsed} from '../when-parsed.ts';
import {whenShown} from '../when-shown.ts';
import {createFiller} from './create-filler.ts';
import {createFolds} from './create-folds.ts';
import {createHeart} from './create-heart.ts';
import {getMarkedSlots, getPageSlots} from './get-page-slots.ts';
import {readPins} from './pins.ts';
import type {Memory, ReaderSettings} from './types.ts';
import {forgetVisits, readVisits, rememberVisit} from './visits.ts';
import {watchPurpose1} from './watch-purpose-1.ts';

/**
 * The reader plane in the browser. Where the edge has declared the page's slots,
 * their batch starts at once, before the body is parsed; a page that marks its
 * slots itself is asked for when it has been parsed. A page that nobody sees yet
 * asks nothing. Started twice, it does nothing the second time.
 */
export const start = (win: Window, settings: ReaderSettings): void => {
  if (win.deckle?.fill) return;
  const heart = createHeart(settings);
  if (!settings.pub) {
    heart('script', 'no_pub');
    return;
  }
  // What a page has done to Array.prototype, say, is told to us and not thrown at it.
  const guard = (step: () => unknown) => () => {
    void (async () => step())().catch(() => heart('script', 'exception'));
  };
  const folds = createFolds(win, settings, Date.now);
  const purpose1 = watchPurpose1(win, settings.skip, () => void forgetVisits(win));
  const fill = createFiller(win, settings, heart, {
    folds,
    onPainted: (winner) => {
      guard(async () => (await purpose1.mayKeep()) && rememberVisit(win, winner, Date.now()))();
    },
  });
  const readMemory = async (): Promise<Memory> => {
    const [pins, visits] = await Promise.all([
      readPins(win, Date.now()),
      purpose1.mayRead().then((may) => (may ? readVisits(win, Date.now()) : NOTHING)),
    ]);
    return {pins, ...visits};
  };
  const fillMarked = () => {
    whenShown(
      win.document,
      guard(() => fill(getMarkedSlots(win.document), readMemory())),
    );
  };
  takeCommands(win, {fill: fillMarked});

  whenShown(
    win.document,
    guard(() => {
      const memory = readMemory();
      guard(() => memory.then(folds.tellUntold))(); // the batch goes first
      const declared = getPageSlots(win.__ts_ad_slots, win.innerWidth);
      if (declared.length) return fill(declared, memory);
      const fillParsed = guard(() => {
        const marked = getMarkedSlots(win.document);
        if (!marked.length) heart('slot', 'none');
        return fill(marked, memory);
      });
      return whenParsed(win, fillParsed);
    }),
  );
};

const NOTHING = {seen: {}, recent: []};
