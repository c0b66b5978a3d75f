import {describe, expect, test} from 'vitest';
import {chooseLayout, fitHeadline} from './choose-layout.ts';
import {getLabels} from './get-labels.ts';
import {guessLanguage} from './guess-language.ts';
import {turn} from './turn.ts';
import type {Creative, Page} from './types.ts';

describe('labels', () => {
  test.each(['en', 'ja', 'de', 'fr', 'es', 'it', 'pt', 'ar', 'zh', 'ko'])(
    '%s has all of them',
    (language) => {
      const {position, ...labels} = getLabels(language);
      expect(Object.values(labels)).toHaveLength(9);
      for (const label of Object.values(labels)) expect(label).toMatch(/\S/);
      expect(position(2, 6)).toMatch(/2.*6|6.*2/);
      expect(position(2, 6)).not.toMatch(/[%#]/);
    },
  );

  test.each([
    ['ja-JP', '閉じる'],
    ['DE', 'Schließen'],
    ['tlh', 'Close'],
    ['', 'Close'],
    ['__proto__', 'Close'],
  ])('in %s the button says %s', (language, close) => {
    expect(getLabels(language).close).toBe(close);
  });
});

describe('keys', () => {
  test.each<[string, boolean, number | undefined]>([
    ['ArrowRight', false, 2],
    ['ArrowLeft', false, 0],
    ['ArrowRight', true, 0],
    ['ArrowLeft', true, 2],
    ['PageDown', true, 2],
    ['PageUp', false, 0],
    ['Home', false, 0],
    ['End', false, 4],
    ['Enter', false, undefined],
    ['constructor', false, undefined],
  ])('%s (right to left: %s) leads to %s', (key, rtl, want) => {
    expect(turn(key, {page: 1, count: 5, rtl})).toBe(want);
  });

  test('there is nothing before the cover, nor behind the last page', () => {
    expect(turn('ArrowLeft', {page: 0, count: 2, rtl: false})).toBeUndefined();
    expect(turn('End', {page: 1, count: 2, rtl: false})).toBeUndefined();
  });
});

describe('layout', () => {
  const page = (more: Partial<Page>): Page => ({
    headline: '',
    sub: '',
    body: '',
    caption: '',
    tag: '',
    background: '',
    ink: '',
    accent: '',
    ctaLabel: '',
    layout: '',
    image: {src: 'x', alt: 'x', focus: {x: 0, y: 0}},
    ...more,
  });
  test.each<[string, Page, string]>([
    ['a picture', page({}), 'full'],
    ['a picture with much text', page({body: 'x'.repeat(200)}), 'split'],
    ['what the creative says', page({layout: 'split'}), 'split'],
    ['no picture', {...page({layout: 'full'}), image: undefined} as unknown as Page, 'text'],
  ])('%s', (_, given, want) => {
    expect(chooseLayout(given)).toBe(want);
  });

  test('headlines are measured by what they take', () => {
    expect(fitHeadline('First light')).toBe(1);
    expect(fitHeadline('Sleep in one country, wake in another')).toBe(0.82);
    expect(fitHeadline('湯けむりの宿で、何もしない')).toBe(0.82);
    expect(fitHeadline('x'.repeat(120))).toBe(0.66);
  });
});

test.each<[string, string, string | undefined]>([
  ['雪の降る音を聴く宿', 'en', 'ja'],
  ['雪の降る音を聴く宿', 'ja-JP', undefined],
  ['秋', 'ja', undefined],
  ['秋天的旅行', 'en', 'zh'],
  ['가을 여행', 'de', 'ko'],
  ['رحلات', 'fr', 'ar'],
  ['Leave after dinner', 'ja', undefined],
])('%s on a page in %s is %s', (headline, around, want) => {
  const creative = {pages: [{headline, sub: '', body: '', tag: ''}], landingUrl: ''};
  expect(guessLanguage(creative as unknown as Creative, around)).toBe(want);
});
