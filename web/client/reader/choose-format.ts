/**
 * The size that a slot gets: of its formats the largest that is no wider than the
 * viewport, or else the narrowest; undefined where it has none.
 */
export const chooseFormat = (
  formats: readonly (readonly number[])[],
  viewportWidth: number,
): readonly number[] | undefined => {
  const byArea = [...formats].sort((a, b) => b[0]! * b[1]! - a[0]! * a[1]!);
  return byArea.find(([w]) => w! <= viewportWidth) ?? byArea.sort((a, b) => a[0]! - b[0]!)[0];
};
