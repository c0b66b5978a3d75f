/**
 * JSON of plain data. JSON.stringify asks a value's toJSON first, and old scripts
 * (Prototype 1.6, say) have put one on Array.prototype that gives a string.
 */
export const toJSON = (value: unknown): string => {
  if (Array.isArray(value)) return `[${joinAll(value.length, (i) => toJSON(value[i]))}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const record = value as Record<string, unknown>;
  const keys = Object.keys(record).filter((key) => record[key] !== undefined);
  return `{${joinAll(keys.length, (i) => `${JSON.stringify(keys[i])}:${toJSON(record[keys[i]!])}`)}}`;
};

const joinAll = (length: number, part: (index: number) => string): string => {
  let text = '';
  for (let i = 0; i < length; i++) text += (i ? ',' : '') + part(i);
  return text;
};
