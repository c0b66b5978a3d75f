import {expect, test} from 'vitest';
import {takeCommands} from './take-commands.ts';

test('queued commands run in order, later ones at once, and none can stop another', () => {
  const ran: string[] = [];
  const deckle = {
    cmd: [
      () => ran.push('first'),
      () => {
        throw new Error('page');
      },
      () => ran.push('second'),
    ],
  };
  const win = {deckle} as unknown as Window;
  const counts = {};
  takeCommands(win, {counts});
  expect(ran).toEqual(['first', 'second']);
  // What the page has kept of its own object goes on working.
  deckle.cmd.push(() => ran.push('third'));
  expect(ran).toEqual(['first', 'second', 'third']);
  expect(win.deckle?.counts).toBe(counts);
});

test('a second script with the same members finds the first', () => {
  const win = {} as Window;
  expect(takeCommands(win, {counts: {}})).toBe(true);
  expect(takeCommands(win, {counts: {}})).toBe(false);
  expect(takeCommands(win, {fill: () => {}})).toBe(true);
});
