import {expect, test} from 'vitest';
import {contrast, getReadableColors} from './readable-colors.ts';

test.each<[string, string, number]>([
  ['#000000', '#ffffff', 21],
  ['#777777', '#ffffff', 4.48],
  ['#abcdef', '#abcdef', 1],
])('contrast of %s and %s is %d', (a, b, want) => {
  expect(contrast(a, b)).toBeCloseTo(want, 2);
  expect(contrast(b, a)).toBeCloseTo(want, 2);
});

test('colours that can be read stay as they are', () => {
  expect(getReadableColors({background: '#143642', ink: '#f6f1e7', accent: '#e9b66a'})).toEqual({
    paper: '#143642',
    ink: '#f6f1e7',
    accent: '#e9b66a',
    onAccent: '#1c1916',
    mark: '#e9b66a',
  });
});

test('whatever a creative asks for, its text can be read', () => {
  const shades = [
    '',
    'red',
    '#000000',
    '#777777',
    '#808080',
    '#ff0000',
    '#0000ff',
    '#ffff00',
    '#ffffff',
    '#97391f',
  ];
  for (const background of shades) {
    for (const ink of shades) {
      for (const accent of shades) {
        const colors = getReadableColors({background, ink, accent});
        const where = JSON.stringify({background, ink, accent, colors});
        expect(contrast(colors.ink, colors.paper), where).toBeGreaterThanOrEqual(4.5);
        expect(contrast(colors.mark, colors.paper), where).toBeGreaterThanOrEqual(4.5);
        expect(contrast(colors.onAccent, colors.accent), where).toBeGreaterThanOrEqual(4.5);
        expect(contrast(colors.accent, colors.paper), where).toBeGreaterThanOrEqual(3);
      }
    }
  }
});
