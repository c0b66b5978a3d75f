// What the reader plane says and keeps (docs: the batch API and the store of
// pins). Types only. What comes from the server or out of storage is checked once,
// in read-answer.ts and read-pin.ts, and trusted from there on.

/** A bookmark: one folded corner, at most one for a slot. Times are Date.now(). */
export interface Pin {
  readonly slotId: string;
  readonly creativeId: string;
  /** Which page's corner; the cover is 0. */
  readonly page: number;
  readonly foldedAt: number;
  readonly expiresAt: number;
}

/** A slot that the page has for a magazine, as the batch asks for it. */
export interface Imp {
  readonly id: string;
  readonly w: number;
  readonly h: number;
}

/** Where slots come from: their imps, and how an element of theirs is found. */
export interface PageSlot extends Imp {
  readonly find: (doc: Document) => HTMLElement | null;
}

/** How often this browser saw a creative in the last hour, day and week. */
export interface Seen {
  readonly h: number;
  readonly d: number;
  readonly w: number;
}

/** What the batch tells the server of this browser. */
export interface Memory {
  readonly pins: readonly Pin[];
  readonly seen: Readonly<Record<string, Seen>>;
  /** Campaigns that were rendered in the last 15 seconds. */
  readonly recent: readonly string[];
}

/** The magazine that fills a slot, and what is told of it. */
export interface Winner {
  readonly creativeId: string;
  readonly campaignId: string;
  /** What the element is given; its addresses are absolute. */
  readonly creative: {readonly pages: readonly unknown[]; readonly landingUrl: string};
  readonly impUrl: string;
  readonly viewUrl: string;
  readonly clickUrl: string;
  readonly ctaUrl: string;
  /** '' where the campaign has no dog-ear. */
  readonly foldToken: string;
  /** Absent for open-ended campaigns. */
  readonly pinExpiresAt?: number;
  /** The slot's pin was honoured: this is the bookmark. */
  readonly honored: boolean;
}

/** A batch's answer. */
export interface Answer {
  /** Winners by slot id. */
  readonly winners: ReadonlyMap<string, Winner>;
  /** Slots whose pin the server says is gone for good. */
  readonly removed: readonly string[];
  /** Creatives, pinned on slots of other pages, that are gone for good. */
  readonly stale: readonly string[];
  /** When to ask once more; 0: never. */
  readonly retryInMs: number;
}

/** From the attributes of the script element. */
export interface ReaderSettings {
  readonly pub: string;
  /** Origin of Deckle: the page's own, or that of the script. */
  readonly base: string;
  /** Why the gate skipped the auction, e.g. no_consent; '' when it did not. */
  readonly skip: string;
}

/** Where a page fails, as the dashboard shows it. */
export type Stage = 'script' | 'slot' | 'serve' | 'render';
