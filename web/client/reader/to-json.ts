/**
 * JSON of plain data. JSON.stringify asks a value's toJSON first, and old scripts
 * (Prototype 1.6, say) have put one on Array.prototype that gives a string.
 */
export const toJSON = (value: unknown): string => {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const record = value as Record<string, unknown>;
  const isList = Array.isArray(value);
  let text = '';
  // Without filter, map and join: heartbeats of pages that have broken them are JSON as well.
  for (const key of Object.keys(record)) {
    if (record[key] === undefined) continue;
    if (text) text += ',';
    if (!isList) text += `${JSON.stringify(key)}:`;
    text += toJSON(record[key]);
  }
  return isList ? `[${text}]` : `{${text}}`;
};
