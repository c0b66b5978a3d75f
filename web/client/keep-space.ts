/** What the edge says of a slot, as far as its place is concerned. */
interface SlotData {
  readonly kind: string;
  readonly div_id: string;
  readonly formats: readonly (readonly [number, number])[];
}

/**
 * Keeps the places of magazines free before anything is painted, so that nothing
 * moves when they come. A place is as high as the format that chooseFormat will
 * choose, unless the page itself says something of its height. A constructed
 * style sheet is no inline style to a Content-Security-Policy.
 */
export const keepSpace = (slots: readonly SlotData[]): void => {
  const sheet = new CSSStyleSheet();
  let css = '';
  for (const {kind, div_id: id, formats} of slots) {
    if (kind !== 'magazine') continue;
    for (const [w, h] of [...formats].sort((a, b) => a[0] * a[1] - b[0] * b[1])) {
      css += `@media(min-width:${w}px){:where([id=${JSON.stringify(id)}]){min-height:${h}px;--deckle:1}}`;
    }
  }
  sheet.replaceSync(css);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
};
