/** What a node is given: attributes, of which undefined ones are left out. */
type Attributes = Readonly<Record<string, string | undefined>>;

/**
 * An element with attributes and children. Strings become text nodes: nothing is
 * ever parsed, so no text of a creative can be markup, and Trusted Types have
 * nothing to object to.
 */
export const createNode = <K extends keyof HTMLElementTagNameMap>(
  doc: Document,
  name: K,
  attributes: Attributes = {},
  ...children: (Node | string | undefined)[]
): HTMLElementTagNameMap[K] => {
  const element = doc.createElement(name);
  for (const key of Object.keys(attributes)) {
    const value = attributes[key];
    if (value !== undefined) element.setAttribute(key, value);
  }
  for (const child of children) {
    if (child === undefined) continue;
    element.appendChild(typeof child === 'string' ? doc.createTextNode(child) : child);
  }
  return element;
};

/** A line drawing, 24 units wide and high. */
export const createIcon = (doc: Document, d: string): SVGElement => {
  const namespace = 'http://www.w3.org/2000/svg';
  const svg = doc.createElementNS(namespace, 'svg');
  const path = doc.createElementNS(namespace, 'path');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  path.setAttribute('d', d);
  svg.appendChild(path);
  return svg;
};
