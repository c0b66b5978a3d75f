import type {MagazineElement} from '../magazine/magazine-element.ts';
import {safely} from '../safely.ts';
import type {Folds} from './create-folds.ts';
import {sendBeacon} from './send-beacon.ts';
import type {PageSlot, Winner} from './types.ts';
import {whenPainted} from './when-painted.ts';
import {whenViewable} from './when-viewable.ts';

/** A slot, its element, what goes into it, and the page of the slot's pin. */
export interface Filling {
  readonly slot: PageSlot;
  readonly place: HTMLElement;
  readonly winner: Winner;
  readonly page: number;
}

/** What becomes of a magazine in the page. */
export interface Shown {
  readonly folds: Folds;
  /** Its cover has been painted. */
  onPainted(winner: Winner): void;
}

/**
 * Puts a winner's magazine into its slot, in place of what is there, and tells
 * what the reader does with it. The element is defined by then.
 */
export const show = (
  win: Window,
  {slot, place, winner, page}: Filling,
  {folds, onPainted}: Shown,
): void => {
  const element = win.document.createElement('deckle-magazine') as MagazineElement;
  element.setAttribute('width', String(slot.w));
  element.setAttribute('height', String(slot.h));
  if (winner.foldToken) element.dataset.foldToken = winner.foldToken;
  if (winner.honored) element.dataset.pinnedPage = String(page);
  element.creative = winner.creative;

  const tell = createTeller(win, winner.honored);
  element.addEventListener('magazine-expand', () => tell(winner.clickUrl));
  element.addEventListener('cta-click', () => tell(winner.ctaUrl));
  element.addEventListener('dogear-fold', (event) => {
    folds.fold(slot.id, winner, (event as CustomEvent<{page: number}>).detail.page);
  });
  element.addEventListener('dogear-unfold', () => folds.unfold(slot.id, winner));

  // An element of the page's own has no `ready`, and the place is as it was.
  void element.ready.then(() =>
    whenPainted(
      win,
      element,
      safely(() => {
        tell(winner.impUrl);
        onPainted(winner);
        whenViewable(win, element, () => tell(winner.viewUrl));
      }),
    ),
  );
  place.textContent = '';
  place.appendChild(element);
};

/** Tells each address once; of a bookmark with dogeared=1, so that logs can be split. */
const createTeller = (win: Window, honored: boolean) => {
  const told = new Set<string>();
  return (url: string): void => {
    if (told.has(url)) return;
    told.add(url);
    void sendBeacon(win, honored ? `${url}&dogeared=1` : url);
  };
};
