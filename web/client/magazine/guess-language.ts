import type {Creative} from './types.ts';

/** Scripts that say enough about a language; kana before Han, which Japanese has as well. */
const SCRIPTS: readonly (readonly [RegExp, string])[] = [
  [/[\u3040-\u30ff]/, 'ja'],
  [/[\uac00-\ud7af]/, 'ko'],
  [/[\u4e00-\u9fff]/, 'zh'],
  [/[\u0600-\u06ff]/, 'ar'],
];

/**
 * The language of a magazine's text, as far as its script says: how it is set
 * (fonts, italics, line breaks) goes by that, whatever language the page around it
 * has. Undefined where the page's own is as good a guess.
 */
export const guessLanguage = ({pages}: Creative, around: string): string | undefined => {
  const text = pages.map(({headline, sub, body, tag}) => headline + sub + body + tag).join('');
  const guess = SCRIPTS.find(([script]) => script.test(text))?.[1];
  // Han alone can be Japanese; of Arabic letters there are many languages.
  const isSame = around.startsWith('ja') && guess === 'zh';
  return isSame || guess === around.split('-', 1)[0] ? undefined : guess;
};
