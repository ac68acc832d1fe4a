/**
 * Returns the canonical form of a JSON value (RFC 8785). Values that JSON lacks are left out or become null, as in
 * JSON.stringify.
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
