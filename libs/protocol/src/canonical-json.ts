/**
 * The canonical form of a JSON value (RFC 8785): equal values give equal text. Numbers and strings are written as
 * ECMAScript does; the names of an object are sorted by their UTF-16 code units, those that look like numbers included.
 * As in JSON.stringify, what JSON cannot represent is left out of objects, and is null in arrays.
 */
export function toCanonicalJson(value: unknown): string {
  return write(value) ?? 'null';
}

function write(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => write(item) ?? 'null').join(',')}]`;
  if ('toJSON' in value && typeof value.toJSON === 'function') return write(value.toJSON());
  const members: string[] = [];
  // Without a comparison function the order is that of UTF-16 code units.
  for (const name of Object.keys(value).sort()) {
    const text = write((value as Record<string, unknown>)[name]);
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(',')}}`;
}
