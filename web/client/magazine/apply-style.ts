import css from './magazine.css';

/**
 * Gives a shadow root the magazine's style. A constructed style sheet is no inline
 * style to a Content-Security-Policy; browsers without one get a style element.
 */
export const applyStyle = (root: ShadowRoot): void => {
  try {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    root.adoptedStyleSheets = [sheet];
  } catch {
    const style = root.ownerDocument.createElement('style');
    style.textContent = css;
    root.append(style);
  }
};
