import {safely} from '../safely.ts';
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
  const folds = createFolds(win, settings, Date.now);
  const purpose1 = watchPurpose1(win, settings.skip, () => void forgetVisits(win));
  const fill = createFiller(win, settings, heart, {
    folds,
    onPainted: (winner) => {
      void purpose1.mayKeep().then((may) => may && rememberVisit(win, winner, Date.now()));
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
    whenShown(win.document, () => void fill(getMarkedSlots(win.document), readMemory()));
  };
  takeCommands(win, {fill: fillMarked});

  whenShown(
    win.document,
    safely(() => {
      const memory = readMemory();
      const declared = getPageSlots(win.__ts_ad_slots, win.innerWidth);
      if (declared.length) void fill(declared, memory);
      else {
        whenParsed(win, () => {
          const marked = getMarkedSlots(win.document);
          if (!marked.length) heart('slot', 'none');
          void fill(marked, memory);
        });
      }
      void memory.then(folds.tellUntold); // the batch goes first
    }),
  );
};

const NOTHING = {seen: {}, recent: []};
