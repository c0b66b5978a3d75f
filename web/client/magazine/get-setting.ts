/** How the page around an element is written. */
export interface Setting {
  readonly lang: string;
  readonly dir: 'ltr' | 'rtl';
  /** Lines run from top to bottom, as in Japanese books. */
  readonly vertical: boolean;
  /** Pages follow one another from right to left. */
  readonly rtl: boolean;
}

/** The language, direction and writing mode of the page where `element` stands. */
export const getSetting = (element: Element): Setting => {
  const doc = element.ownerDocument;
  const lang =
    element.closest('[lang]')?.getAttribute('lang') || doc.defaultView?.navigator.language || 'en';
  // The element resets what it inherits, so its parent is asked.
  const style = getComputedStyle(element.parentElement ?? doc.documentElement);
  const dir = style.direction === 'rtl' ? 'rtl' : 'ltr';
  const vertical = style.writingMode.startsWith('vertical');
  return {lang, dir, vertical, rtl: dir === 'rtl' || style.writingMode === 'vertical-rl'};
};
