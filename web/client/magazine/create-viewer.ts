import {createIcon, createNode} from './create-node.ts';
import {createPage} from './create-page.ts';
import {createScroller} from './create-scroller.ts';
import type {Labels} from './get-labels.ts';
import type {Setting} from './get-setting.ts';
import {guessLanguage} from './guess-language.ts';
import {move} from './move.ts';
import {trapFocus} from './trap-focus.ts';
import {turn} from './turn.ts';
import type {Creative} from './types.ts';

export interface ViewerOptions {
  readonly creative: Creative;
  readonly labels: Labels;
  readonly setting: Setting;
  /** The campaign has a dog-ear. */
  readonly canFold: boolean;
  /** What it grows out of and shrinks back into. */
  getCover(): Element;
  onPage(page: number): void;
  /** The corner of the page that is shown has been tapped. */
  onCorner(page: number): void;
  onCTA(page: number): void;
  /** The reader closes it. */
  onClose(): void;
  /** It has closed. */
  onClosed(): void;
}

/** The full-screen dialog in which a magazine is read. */
export interface Viewer {
  readonly dialog: HTMLDialogElement;
  /** Opens at a page, growing out of the cover. */
  open(page: number): void;
  /** Closes, shrinking back. Does nothing where it is closed. */
  close(): void;
  /** Shows which page's corner is folded. */
  showFold(page: number | undefined): void;
  /** Says something to readers who listen. */
  announce(text: string): void;
}

const ICONS = {
  close: 'M6 6l12 12M18 6L6 18',
  previous: 'M15 5l-7 7 7 7',
  next: 'M9 5l7 7-7 7',
  corner: 'M5 3.5h9l5 5v12H5zM14 3.5v5h5',
};

export const createViewer = (doc: Document, options: ViewerOptions): Viewer => {
  const {creative, labels, setting} = options;
  const count = creative.pages.length;
  const parts = createParts(doc, options);
  const {dialog, stage, status} = parts;
  let page = 0;
  let folded: number | undefined;
  let isOpen = false;

  const show = (target: number) => {
    if (target === page) return;
    page = target;
    update(parts, page, folded);
    status.textContent = labels.position(page + 1, count);
    options.onPage(page);
  };
  const scroller = createScroller(parts.scroller, setting.rtl, show);
  const goTo = (target: number) => {
    if (target < 0 || target >= count) return;
    show(target);
    scroller.scrollTo(target, true);
  };
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    dialog.classList.add('closing');
    options.onClose();
    // Where the browser has closed it already, there is nothing to be seen moving.
    // Where it has been opened again meanwhile, it stays so.
    if (dialog.open) move(stage, options.getCover(), true, () => !isOpen && dialog.close());
  };
  const listen = (part: Element | undefined, on: () => void) => part?.addEventListener('click', on);
  listen(parts.close, close);
  listen(parts.previous, () => goTo(page - 1));
  listen(parts.next, () => goTo(page + 1));
  listen(parts.corner, () => options.onCorner(page));
  listenToDialog(dialog, {
    close,
    closed: options.onClosed,
    onKey: (key) => {
      const target = turn(key, {page, count, rtl: setting.rtl});
      if (target !== undefined) goTo(target);
      return target !== undefined;
    },
  });

  return {
    dialog,
    open(target) {
      page = target;
      isOpen = true;
      dialog.classList.toggle('first', !dialog.classList.contains('closing'));
      dialog.classList.remove('closing');
      dialog.showModal();
      dialog.focus();
      update(parts, page, folded);
      scroller.scrollTo(page, false);
      status.textContent = labels.position(page + 1, count);
      move(stage, options.getCover(), false, () => {});
    },
    close,
    showFold(target) {
      folded = target;
      update(parts, page, folded);
    },
    announce(text) {
      status.textContent = text;
    },
  };
};

/** Makes the dialog's parts say which page is shown, and which one is folded. */
const update = (parts: Parts, page: number, folded: number | undefined): void => {
  const {pages, ticks, corner} = parts;
  parts.previous.setAttribute('aria-disabled', String(page === 0));
  parts.next.setAttribute('aria-disabled', String(page === pages.length - 1));
  corner?.setAttribute('aria-pressed', String(page === folded));
  pages.forEach((node, i) => {
    node.toggleAttribute('inert', i !== page);
    for (const {classList} of [node, ticks[i]!]) {
      classList.toggle('here', i === page);
      classList.toggle('folded', i === folded);
    }
  });
  allowScrolling(pages[page]!);
};

/** What a dialog's own events lead to. */
interface DialogListener {
  close(): void;
  closed(): void;
  /** Whether the key has turned a page. */
  onKey(key: string): boolean;
}

const listenToDialog = (dialog: HTMLDialogElement, {close, closed, onKey}: DialogListener) => {
  dialog.addEventListener('click', ({target}) => {
    if (target === dialog) close(); // beside the magazine
  });
  dialog.addEventListener('cancel', (event) => {
    event.preventDefault(); // Escape, or Android's back: closes in our own time
    close();
  });
  dialog.addEventListener('close', () => {
    if (dialog.open) return; // again, before this event came
    close(); // a browser need not ask twice
    closed();
  });
  dialog.addEventListener('keydown', (event) => {
    if (event.key === 'Tab') trapFocus(dialog, event);
    else if (!event.altKey && !event.ctrlKey && !event.metaKey && onKey(event.key)) {
      event.preventDefault();
    }
  });
  dialog.addEventListener('wheel', keepPageStill, {passive: false});
};

type Parts = ReturnType<typeof createParts>;

/** The dialog's nodes. */
const createParts = (doc: Document, {creative, labels, setting, ...options}: ViewerOptions) => {
  const last = creative.pages.length - 1;
  const button = (kind: keyof typeof ICONS, label: string, pressed?: 'false') =>
    createNode(
      doc,
      'button',
      {class: kind, type: 'button', 'aria-label': label, 'aria-pressed': pressed},
      createIcon(doc, ICONS[kind]),
    );
  const lang = guessLanguage(creative, setting.lang);
  const pages = creative.pages.map((page, i) => {
    const node = createPage(doc, page, {
      collapsed: false,
      cta: page.ctaLabel || (i === last ? labels.more : ''),
      landingUrl: creative.landingUrl,
      folio: i ? String(i + 1) : '',
      lang,
      onCTA: () => options.onCTA(i),
    }).page;
    node.setAttribute('role', 'group');
    node.setAttribute('aria-label', labels.position(i + 1, last + 1));
    return node;
  });
  const ticks = pages.map(() => createNode(doc, 'i'));
  const [cover] = creative.pages;
  const title = cover?.headline || cover?.image?.alt || labels.ad;
  const scroller = createNode(
    doc,
    'div',
    {
      class: 'pages',
      dir: setting.rtl ? 'rtl' : 'ltr',
      role: 'group',
      'aria-label': title,
      tabindex: '0',
    },
    ...pages,
  );
  const corner = options.canFold ? button('corner', labels.fold, 'false') : undefined;
  corner?.appendChild(createNode(doc, 'span', {class: 'hint', 'aria-hidden': 'true'}, labels.fold));
  const stage = createNode(doc, 'div', {class: 'stage'}, scroller, corner);
  const status = createNode(doc, 'p', {class: 'status', role: 'status'});
  const parts = {
    close: button('close', labels.close),
    previous: button('previous', labels.previous),
    next: button('next', labels.next),
  };
  const dialog = createNode(
    doc,
    'dialog',
    {
      class: 'viewer',
      'aria-label': `${labels.ad}: ${title}`,
      lang: setting.lang,
      dir: setting.dir,
      tabindex: '-1',
    },
    parts.close,
    createNode(doc, 'p', {class: 'ad'}, labels.ad),
    stage,
    parts.previous,
    createNode(doc, 'div', {class: 'ticks', 'aria-hidden': 'true'}, ...ticks),
    parts.next,
    status,
  );
  dialog.classList.toggle('turn-rtl', setting.rtl);
  dialog.classList.toggle('vertical', setting.vertical);
  return {dialog, stage, scroller, pages, corner, status, ticks, ...parts};
};

/** A text that is longer than its page can be scrolled by keyboard. */
const allowScrolling = (page: Element): void => {
  const text = page.querySelector<HTMLElement>('.text');
  if (!text) return;
  const overflows =
    text.scrollHeight > text.clientHeight + 1 || text.scrollWidth > text.clientWidth + 1;
  if (overflows) text.tabIndex = 0;
  else text.removeAttribute('tabindex');
};

/** The page behind does not scroll: a wheel moves a long text, or nothing. */
const keepPageStill = (event: WheelEvent): void => {
  const text = event.target instanceof Element && event.target.closest('.text[tabindex]');
  if (!text && Math.abs(event.deltaY) >= Math.abs(event.deltaX)) event.preventDefault();
};
