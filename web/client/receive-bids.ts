import type {Slot} from './page.ts';
import {takeBlock} from './take-block.ts';
import {watchDocument} from './watch-document.ts';

/** What the edge writes at the last moment still has to arrive and be parsed. */
const ARRIVAL_MS = 50;

export interface BidsReceiver {
  /** Resolved when the bids are there, or can no longer come. */
  readonly settled: Promise<void>;
  /** Hands over what the runner of hole 2, or the page, passed to __tsAdInit. */
  deliver(value: unknown): void;
}

/**
 * Waits for the bids of hole 2 as long as the slots' deadline says, counted from
 * `parsedAt` (performance.now() at hole 1). Where the page's policy has stopped
 * the runner, the data block stands there alone and is read from here.
 */
export const receiveBids = (
  win: Window,
  {slots, parsedAt}: {slots: readonly Slot[]; parsedAt: number},
  receive: (value: unknown) => void,
): BidsReceiver => {
  let delivered = false;
  let settle: () => void;
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  const deliver = (value: unknown) => {
    delivered = true;
    receive(value);
    settle();
  };
  const look = () => {
    const block = delivered ? undefined : takeBlock(win.document, 'bids');
    if (block) {
      win.__ts_bids = block;
      deliver(block);
    }
    return delivered;
  };

  if (win.__ts_bids !== undefined) deliver(win.__ts_bids);
  watchDocument(win, 0, look);
  const deadlineMs = Math.max(0, ...slots.map((slot) => slot.deadlineMs));
  const left = deadlineMs && parsedAt + deadlineMs + ARRIVAL_MS - performance.now();
  if (left > 0) setTimeout(() => settle(), left);
  else settle!();
  return {settled, deliver};
};
