import {applyStyle} from './apply-style.ts';
import {type Cover, createCover} from './create-cover.ts';
import {createViewer, type Viewer} from './create-viewer.ts';
import {getLabels} from './get-labels.ts';
import {getSetting} from './get-setting.ts';
import {readCreative} from './read-creative.ts';
import type {Creative} from './types.ts';

const DEFAULT_WIDTH = 300;
const DEFAULT_HEIGHT = 250;

/**
 * `<deckle-magazine>`: a magazine ad. Closed it is a cover, `width` by `height`
 * CSS pixels or as wide as there is room; it opens to a full-screen dialog.
 *
 * With `data-fold-token` its pages have corners that can be folded;
 * `data-pinned-page` is the page that is folded (the cover is 0). It keeps and
 * tells nothing itself, but fires, composed and bubbling, `magazine-expand`,
 * `magazine-page-changed`, `magazine-collapse`, `dogear-fold`, `dogear-unfold`
 * and `cta-click`, whose `detail.page` says where the reader is.
 */
export class MagazineElement extends HTMLElement {
  /** The cover's picture is there, or there is none. */
  readonly ready: Promise<void>;

  private readonly root: ShadowRoot;
  private becomeReady: (when: Promise<void>) => void = () => {};
  private magazine: Creative | undefined;
  private cover: Cover | undefined;
  private viewer: Viewer | undefined;
  private folded: number | undefined;

  constructor() {
    super();
    this.root = this.attachShadow({mode: 'open'});
    applyStyle(this.root);
    this.ready = new Promise((resolve) => {
      this.becomeReady = resolve;
    });
  }

  /**
   * What is shown: a creative as the catalog has it (creative.schema.json). What
   * cannot be shown becomes undefined; addresses become absolute.
   */
  get creative(): Creative | undefined {
    return this.magazine;
  }

  set creative(creative: unknown) {
    this.magazine = readCreative(creative, this.baseURI);
    this.viewer?.dialog.remove();
    this.viewer = undefined;
    if (this.isConnected) this.render();
  }

  connectedCallback(): void {
    // Set before the element was defined, it hides the accessor.
    if (Object.keys(this).includes('creative')) {
      const {creative} = this;
      delete (this as {creative?: unknown}).creative;
      this.magazine = readCreative(creative, this.baseURI);
    }
    this.render();
  }

  disconnectedCallback(): void {
    this.viewer?.dialog.remove();
    this.viewer = undefined;
  }

  /** Opens the magazine, at the folded page unless another is asked for. */
  expand(page?: number): void {
    if (!this.magazine || !this.cover || this.viewer?.dialog.open) return;
    const start = toPage(page ?? this.folded ?? 0, this.magazine.pages.length);
    this.viewer ??= this.createViewer(this.magazine);
    this.viewer.open(start);
    this.viewer.showFold(this.folded);
    this.fire('magazine-expand', start);
  }

  collapse(): void {
    this.viewer?.close();
  }

  private render(): void {
    const creative = this.magazine;
    if (!creative) {
      this.cover?.node.remove();
      return;
    }
    const pinned = this.dataset.pinnedPage;
    // A page beyond the end of a newer version opens the last.
    this.folded = pinned === undefined ? undefined : toPage(Number(pinned), creative.pages.length);
    const setting = getSetting(this);
    const cover = createCover(this.ownerDocument, {
      creative,
      labels: getLabels(setting.lang),
      setting,
      folded: this.folded,
      width: toSide(this.getAttribute('width'), DEFAULT_WIDTH),
      height: toSide(this.getAttribute('height'), DEFAULT_HEIGHT),
      onOpen: () => this.expand(),
    });
    this.cover?.node.remove();
    this.cover = cover;
    this.root.prepend(cover.node);
    this.becomeReady(cover.ready);
  }

  private createViewer(creative: Creative): Viewer {
    const setting = getSetting(this);
    const labels = getLabels(setting.lang);
    const viewer = createViewer(this.ownerDocument, {
      creative,
      labels,
      setting,
      // A bookmark can always be removed, also of a campaign that wants no more.
      canFold: Boolean(this.dataset.foldToken) || this.folded !== undefined,
      getCover: () => this.cover!.node,
      onPage: (page) => this.fire('magazine-page-changed', page),
      onCorner: (page) => {
        const folds = page !== this.folded;
        if (folds) this.dataset.pinnedPage = String(page);
        else delete this.dataset.pinnedPage;
        this.render();
        viewer.showFold(this.folded);
        viewer.announce(folds ? labels.folded : labels.unfolded);
        this.fire(folds ? 'dogear-fold' : 'dogear-unfold', page);
      },
      onCTA: (page) => this.fire('cta-click', page),
      onClose: () => this.fire('magazine-collapse', this.folded ?? 0),
      onClosed: () => this.cover?.button.focus({preventScroll: true}),
    });
    this.root.append(viewer.dialog);
    return viewer;
  }

  private fire(type: string, page: number): void {
    this.dispatchEvent(new CustomEvent(type, {bubbles: true, composed: true, detail: {page}}));
  }
}

const toSide = (value: string | null, otherwise: number): number => {
  const side = Number(value);
  return side >= 1 && side <= 10_000 ? side : otherwise;
};

const toPage = (page: number, count: number): number =>
  Math.min(Math.max(0, Math.floor(page) || 0), count - 1);
