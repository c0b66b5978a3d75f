/** Where the reader is in a magazine, and which way it is bound. */
export interface Place {
  readonly page: number;
  readonly count: number;
  /** Pages follow one another from right to left: Arabic, or vertical Japanese. */
  readonly rtl: boolean;
}

/** The page that a key leads to; undefined where it leads nowhere. */
export const turn = (key: string, {page, count, rtl}: Place): number | undefined => {
  const targets: Readonly<Record<string, number>> = {
    ArrowRight: page + (rtl ? -1 : 1),
    ArrowLeft: page + (rtl ? 1 : -1),
    PageDown: page + 1,
    PageUp: page - 1,
    Home: 0,
    End: count - 1,
  };
  const target = Object.keys(targets).includes(key) ? targets[key]! : -1;
  return target >= 0 && target < count && target !== page ? target : undefined;
};
