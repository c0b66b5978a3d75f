// What the edge writes into a page, and what this script keeps of it. Types only.
// Values that come from bidders are strangers': they are checked once, in
// get-slots.ts and get-bids.ts, and trusted from there on.
import type {AdUnit} from './create-supply.ts';

/** A GPT slot, as `window.__ts_ad_slots` declares it. */
export interface Slot {
  readonly id: string;
  readonly gamUnitPath: string;
  readonly divId: string;
  readonly formats: [number, number][];
  readonly targeting: Targeting;
  /** Whether we render its ads ourselves (ad_server = "none"). */
  readonly own: boolean;
  /** Milliseconds from hole 1 until bids can no longer come; 0 when none will. */
  readonly deadlineMs: number;
}

/** Ad-server key-values of one slot. */
export type Targeting = Record<string, string | string[]>;

/** A winner of the auction, as `window.__ts_bids` has it under its slot's id. */
export interface Bid {
  readonly slotId: string;
  readonly adId: string;
  /** Every `hb_*` key of the entry, hb_adid among them. */
  readonly targeting: Readonly<Record<string, string>>;
  readonly w: number;
  readonly h: number;
  /** What is fired when the bid is billed: burl, and nurl where the edge leaves it to us. */
  readonly notices: readonly string[];
  /** Billed when its markup was handed to a creative, or as soon as the slot has rendered. */
  readonly burlOn: 'creative' | 'render';
  /** By Date.now(): performance.now() stands still while a computer sleeps. */
  readonly expiresAt: number;
}

/** How the edge configures the client, from the attributes of its script element. */
export interface Settings {
  /** Why the gate skipped the auction, e.g. no_consent or prefetch; '' when it did not. */
  readonly skip: string;
  /** Who loads gpt.js. */
  readonly gpt: 'page' | 'load';
  readonly gptUrl: ScriptURL;
  readonly init: 'early' | 'dom' | 'load';
  /** Who brings bids: the page, or our own question for them. */
  readonly bids: 'inline' | 'fetch';
  /** Whether the page's script goes from path to path. */
  readonly spa: boolean;
  /** When hole 1 was parsed, by performance.now(). */
  readonly parsedAt: number;
  readonly nonce: string;
}

/** What a page can see of us besides `__ts*`. */
export interface Deckle {
  /** As googletag.cmd: functions run in order, at once when the client is there. */
  cmd: {push(...commands: (() => void)[]): number};
  /** How often something happened in this page view: adRenderSucceeded, burl, … */
  counts?: Record<string, number>;
  /** Calls a function at every auctionEnd, bidWon, adRendered. */
  on?: (name: string, listener: (detail: unknown) => void) => void;
  /** Asks for bids for ad units; resolved with the codes that have got one. */
  requestBids?: (adUnits: readonly AdUnit[]) => Promise<string[]>;
  /** New bids and new ads for the slots with these codes, or for all. */
  refresh?: (codes?: readonly string[]) => Promise<void>;
  /** Tells what the reader has said, where the CMP has no TCF API. */
  consent?: (yes: boolean) => void;
  /** Fills the magazine slots that the page has marked since it was loaded. */
  fill?: () => void;
}

/** A string, or a TrustedScriptURL where the page enforces Trusted Types. */
export type ScriptURL = string | {toString(): string};

/** https://w3c.github.io/trusted-types/dist/spec/#trusted-type-policy */
export interface ScriptURLPolicy {
  createScriptURL(url: string): ScriptURL;
}

/** TCData of IAB's TCF v2 CMP API, as far as we read it. */
export interface TCData {
  readonly eventStatus?: string;
  readonly gdprApplies?: boolean;
  readonly purpose?: {readonly consents?: Readonly<Record<number, boolean>>};
}

declare global {
  interface Window {
    __ts_ad_slots?: unknown;
    __ts_bids?: unknown;
    __tsAdInit?: (bids?: unknown) => void;
    __tcfapi?: (
      command: 'addEventListener',
      version: 2,
      callback: (data: TCData | null, success: boolean) => void,
    ) => void;
    deckle?: Deckle;
    googletag?: typeof googletag;
    trustedTypes?: {createPolicy(name: string, rules: ScriptURLPolicy): ScriptURLPolicy};
  }
  interface Document {
    /** https://wicg.github.io/nav-speculation/prerendering.html */
    readonly prerendering?: boolean;
  }
}
