/** Up to this size the worker redacts an output; a larger one its process does, which takes longer to start what it needs for that. */
export const REDACTED_BY_WORKER_BYTES = 65_536;

/** Shorter than any token of a known format. */
const LEAST_CHARS = 8;

export function redactJsonText(text: string, redact: (text: string) => string): string {
  return JSON.stringify(redactJson(JSON.parse(text), redact));
}

/** A JSON value with what `redact` finds in its strings and keys replaced; what a key is called tells what its text may be. */
export function redactJson(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redactIfLong(value, redact);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => redactJson(item, redact));
  // Without a prototype `__proto__` is a key like any other.
  const copy = Object.create(null);
  for (const [key, item] of Object.entries(value)) {
    let safeKey = redactIfLong(key, redact);
    // Two that read alike now are still two.
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
