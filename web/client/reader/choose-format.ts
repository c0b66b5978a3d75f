type Format = readonly [number, number];

/**
 * The size that a slot gets: of its formats the largest that is no wider than the
 * viewport, or else the narrowest, the lower one of two; undefined where it has
 * none.
 */
export const chooseFormat = (formats: readonly Format[], width: number): Format | undefined => {
  const area = ([w, h]: Format) => w * h;
  const [largest] = formats.filter(([w]) => w <= width).sort((a, b) => area(b) - area(a));
  return largest ?? [...formats].sort((a, b) => a[0] - b[0] || a[1] - b[1])[0];
};
