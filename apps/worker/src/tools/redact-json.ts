/** Size up to which the worker redacts outputs. A larger output is redacted in its process, once that has the rules. */
export const REDACTED_BY_WORKER_BYTES = 65_536;

/** Length below which no string is a token of a known format. */
const LEAST_CHARS = 8;

export function redactJsonText(text: string, redact: (text: string) => string): string {
  return JSON.stringify(redactJson(JSON.parse(text), redact));
}

/** Applies `redact` to all strings and keys of a JSON value. A key may tell what its string means. */
export function redactJson(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redactIfLong(value, redact);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => redactJson(item, redact));
  // Without a prototype, `__proto__` is an ordinary key.
  const copy = Object.create(null);
  for (const [key, item] of Object.entries(value)) {
    let safeKey = redactIfLong(key, redact);
    // Two keys that became equal by redaction stay two keys.
    while (safeKey in copy) safeKey += '_';
    copy[safeKey] = typeof item === 'string' ? redactNamed(key, item, redact) : redactJson(item, redact);
  }
  return copy;
}

function redactNamed(key: string, text: string, redact: (text: string) => string): string {
  if (text.length < LEAST_CHARS) return text;
  const before = `${key}: `;
  const both = redact(before + text);
  return both.startsWith(before) ? both.slice(before.length) : redact(text);
}

function redactIfLong(text: string, redact: (text: string) => string): string {
  return text.length < LEAST_CHARS ? text : redact(text);
}
