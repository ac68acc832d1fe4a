/** The worker redacts outputs up to this size. Larger ones are redacted in the process of their call, which has to load the rules first. */
export const REDACTED_BY_WORKER_BYTES = 65_536;

/** Shorter than any token of a known format. */
const LEAST_CHARS = 8;

export function redactJsonText(text: string, redact: (text: string) => string): string {
  return JSON.stringify(redactJson(JSON.parse(text), redact));
}

/** Applies `redact` to all strings and keys of a JSON value. A string is redacted together with its key, which may show what it is. */
export function redactJson(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redactIfLong(value, redact);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => redactJson(item, redact));
  // Without a prototype `__proto__` is an ordinary key.
  const copy = Object.create(null);
  for (const [key, item] of Object.entries(value)) {
    let safeKey = redactIfLong(key, redact);
    // Two keys that became equal stay two keys.
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
