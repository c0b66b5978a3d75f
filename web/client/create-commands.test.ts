import {expect, test} from 'vitest';
import {createCommands} from './create-commands.ts';

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
  const count = createCommands(win);
  expect(ran).toEqual(['first', 'second']);
  // What the page has kept of its own object goes on working.
  deckle.cmd.push(() => ran.push('third'));
  expect(ran).toEqual(['first', 'second', 'third']);
  count?.('burl');
  count?.('burl');
  expect(win.deckle?.counts).toEqual({burl: 2});
});

test('a second client finds the first', () => {
  const win = {} as Window;
  expect(createCommands(win)).toBeDefined();
  expect(createCommands(win)).toBeUndefined();
});
