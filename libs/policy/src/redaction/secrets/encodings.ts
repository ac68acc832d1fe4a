/** Returns the encodings of a value that are searched for as literal texts. */
export function exactEncodings(value: string): string[] {
  return [value, ...quoted(value), ...markup(value)];
}

/** Returns encodings that escape every character, including those that need no escape. */
export function fullyEscaped(value: string): (string | Buffer)[] {
  const bytes = [...Buffer.from(value)].map((byte) => byte.toString(16).padStart(2, '0'));
  const littleEndian = Buffer.from(value, 'utf16le');
  const units = Array.from({ length: value.length }, (_, at) => value.charCodeAt(at).toString(16).padStart(4, '0'));
  return [
    ...inBothCases('\\u', units),
    ...inBothCases('\\x', bytes),
    ...inBothCases('%', bytes),
    littleEndian,
    Buffer.from(littleEndian).swap16(),
  ];
}

function inBothCases(before: string, codes: readonly string[]): string[] {
  const join = (all: readonly string[]) => all.map((code) => before + code).join('');
  return [join(codes), join(codes.map((code) => code.toUpperCase()))];
}

/** Returns encodings whose output may be broken into lines. */
export function wrappableEncodings(value: string): string[] {
  const hex = Buffer.from(value).toString('hex');
  return [...base64Cores(value), hex, hex.toUpperCase()];
}

/**
 * Returns the base64 of the value as it appears inside a longer text. The edges are left out, because they depend on
 * neighbouring bytes.
 */
function base64Cores(value: string): string[] {
  const bytes = Buffer.from(value);
  const cores = [0, 1, 2].map((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    return encoded.slice(Math.ceil((8 * shift) / 6), Math.floor((8 * (shift + bytes.length)) / 6));
  });
  return [...cores, ...cores.map((core) => core.replaceAll('+', '-').replaceAll('/', '_'))];
}

/**
 * Quotes for JSON (with and without escapes of '/' and non-ASCII), for C, Go and Python strings, for shells, and for
 * CSV, SQL and YAML.
 */
function quoted(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const ascii = json.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const backslashed = value.replace(/[^A-Za-z0-9_@%+=:,./\n-]/g, (character) => `\\${character}`);
  return [
    json,
    JSON.stringify(json).slice(1, -1),
    json.replaceAll('/', '\\/'),
    ascii,
    ascii.replace(/\\u([0-9a-f]{4})/g, (_, digits: string) => `\\u${digits.toUpperCase()}`),
    asPython(json),
    json.replaceAll('\\"', '"').replaceAll("'", "\\'"),
    value.replaceAll("'", `'\\''`),
    value.replaceAll("'", `'"'"'`),
    // dash and busybox ash put adjacent quotes into one pair of double quotes.
    value.replace(/'+/g, (quotes) => `'"${quotes}"'`),
    value.replaceAll("'", "''"),
    value.replaceAll('"', '""'),
    value.replace(/["$`\\]/g, (character) => `\\${character}`),
    backslashed,
    // The replacement is a function, because `$'` in a replacement string means the text after the match.
    backslashed.replaceAll('\n', () => "$'\\n'"),
  ];
}

/** Escapes non-ASCII characters as Python's `ascii` does: \x, \u or \U, whichever is shortest. */
function asPython(json: string): string {
  return json.replace(/[\x7f-\u{10ffff}]/gu, (character) => {
    const digits = character.codePointAt(0)!.toString(16);
    if (digits.length <= 2) return `\\x${digits}`;
    return digits.length <= 4 ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`;
  });
}

function markup(value: string): string[] {
  const basic = value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const double = basic.replaceAll('"', '&quot;');
  return [
    basic,
    double,
    double.replaceAll("'", '&apos;'),
    double.replaceAll("'", '&#39;'),
    double.replaceAll("'", '&#x27;'),
    basic.replaceAll('"', '&#34;').replaceAll("'", '&#39;'),
  ];
}
