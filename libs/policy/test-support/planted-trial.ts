import { compileRedaction, type Redaction } from '../src/redaction/compile.ts';
import { cutAt, feed, feedRestarted } from './every-chunking.ts';
import { pick, type Random, seededRandom, tokenSamples } from './token-samples.ts';

// Random trials: a secret, encoded by the platform, in random text that is fed in random pieces.

const SECRETS_IN_A_SESSION = 6;
const TRIALS_OF_A_SESSION = 250;

const WAYS: Record<string, (secret: string, random: Random) => Planted> = {
  raw: (secret) => inFull(secret),
  crlf: (secret) => inFull(secret.replaceAll('\n', '\r\n')),
  'a line': (secret, random) => inFull(pick(random, linesOf(secret))),
  base64: (secret, random) => inBase64(secret, random, 'base64'),
  base64url: (secret, random) => inBase64(secret, random, 'base64url'),
  'base64 in lines': (secret, random) => inLines(inBase64(secret, random, 'base64'), random),
  percent: (secret) => inFull(encodeURIComponent(secret)),
  'percent, lower': (secret) => inFull(encodeURIComponent(secret).replace(/%../g, (digits) => digits.toLowerCase())),
  form: (secret) => inFull(new URLSearchParams({ a: secret }).toString().slice(2)),
  userinfo: (secret) => {
    const url = new URL('http://host');
    url.password = secret;
    return inFull(url.password);
  },
  json: (secret) => inFull(JSON.stringify(secret).slice(1, -1)),
  'json in json': (secret) => inFull(JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)),
  xml: (secret) =>
    inFull(
      secret.replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' })[c]!),
    ),
  'bash, locale C': (secret) => inFull(inLocaleC(secret)),
  'json of go': (secret) =>
    inFull(
      JSON.stringify(secret)
        .slice(1, -1)
        .replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
    ),
  shell: (secret) => inFull(secret.replaceAll("'", "'\\''")),
  hex: (secret) => inFull(Buffer.from(secret).toString('hex')),
  'hex, upper': (secret) => inFull(Buffer.from(secret).toString('hex').toUpperCase()),
  'hex, separated': (secret, random) =>
    inFull(bytesOf(secret, (hex) => hex).join(pick(random, [':', '-', ' ', ', 0x', ' 0x', '\n ']))),
  'bytes as \\x': (secret) => inFull(bytesOf(secret, (hex) => `\\x${hex}`).join('')),
  'all of json as \\u': (secret) =>
    inFull(Array.from({ length: secret.length }, (_, at) => `\\u${toHex(secret.charCodeAt(at), 4)}`).join('')),
  // Only an ASCII secret is encoded, because the text of a trial is written as UTF-8.
  'UTF-16': (secret) => inFull(/[^\0-\x7f]/.test(secret) ? secret : [...secret].map((c) => `${c}\0`).join('')),
};

function bytesOf(secret: string, write: (hex: string) => string): string[] {
  return Array.from(Buffer.from(secret), (byte) => write(toHex(byte, 2)));
}

function toHex(number: number, digits: number): string {
  return number.toString(16).padStart(digits, '0');
}

interface Planted {
  text: string;
  /** The text that must not be in the output. */
  hidden: string;
}

function inFull(text: string): Planted {
  return { text, hidden: text };
}

/**
 * Encodes the secret within a longer text. Characters at the edges also depend on neighbouring bytes, so they may
 * appear in the output.
 */
function inBase64(secret: string, random: Random, encoding: 'base64' | 'base64url'): Planted {
  const before = 'user:'.slice(random(5));
  const text = Buffer.from(`${before}${secret}${pick(random, ['', '@', '\n', 'xy'])}`).toString(encoding);
  const from = Math.ceil((8 * before.length) / 6);
  const to = Math.floor((8 * (before.length + Buffer.byteLength(secret))) / 6);
  return { text, hidden: text.slice(from, to) };
}

/** Breaks the text into lines of a random length. */
function inLines({ text, hidden }: Planted, random: Random): Planted {
  const lines = new RegExp(`.{${8 + random(70)}}`, 'g');
  const cut = (part: string): string => part.replaceAll(lines, '$&\n');
  const from = text.indexOf(hidden);
  const [before, whole] = [cut(text.slice(0, from)), cut(text.slice(0, from + hidden.length))];
  return { text: cut(text), hidden: whole.slice(before.length).trim() };
}

/** Escapes bytes as bash's `printf %q` does in the locale C. */
function inLocaleC(secret: string): string {
  return Array.from(Buffer.from(secret), (byte) => {
    if (byte === 0x0a) return '\\n';
    if (byte < 0x20 || byte > 0x7e) return `\\${byte.toString(8).padStart(3, '0')}`;
    return byte === 0x27 || byte === 0x5c ? `\\${String.fromCharCode(byte)}` : String.fromCharCode(byte);
  }).join('');
}

function linesOf(secret: string): string[] {
  return secret.split('\n').filter((line) => [...line].length >= 6);
}

export interface TrialCounts {
  trials: number;
  leaks: number;
  /** Number of trials in which pieces or a restart gave another result than the whole input. */
  differences: number;
  failed: string[];
}

/** Runs `trials` trials. The same seed gives the same trials. */
export function runTrials(trials: number, seed: number): TrialCounts {
  const result: TrialCounts = { trials, leaks: 0, differences: 0, failed: [] };
  const random = seededRandom(seed);
  for (let done = 0; done < trials; ) {
    const secrets = Array.from({ length: SECRETS_IN_A_SESSION }, () => makeSecret(random));
    const redaction = compileSession(secrets);
    for (let trial = 0; trial < TRIALS_OF_A_SESSION && done < trials; trial += 1, done += 1) {
      const way = pick(random, Object.keys(WAYS));
      const planted = WAYS[way]!(pick(random, secrets), random);
      const text = surround(planted.text, random);
      const verdict = check(redaction, text, planted.hidden, random);
      result.leaks += verdict.leaked ? 1 : 0;
      result.differences += verdict.differs ? 1 : 0;
      if ((verdict.leaked || verdict.differs) && result.failed.length < 10) {
        result.failed.push(`${way}: ${JSON.stringify({ hidden: planted.hidden, text, verdict })}`);
      }
    }
  }
  return result;
}

function compileSession(secrets: readonly string[]): Redaction {
  return compileRedaction({
    secrets: Object.fromEntries(secrets.map((secret, index) => [`S${index}`, secret])),
    rules: [
      { type: 'email', strategy: 'mask' },
      { type: 'credit_card', strategy: 'redact' },
      { type: 'ip', strategy: 'hash' },
      { type: 'mac_address', strategy: 'redact' },
      { type: 'url', strategy: 'redact' },
      { type: 'ticket', strategy: 'redact', pattern: String.raw`\b[A-Z]{2,4}-\d+\b` },
      { type: 'bracket', strategy: 'mask', pattern: String.raw`\{\{[^}]*\}\}` },
    ],
    hashKey: Buffer.alloc(32, 1),
  });
}

function check(
  redaction: Redaction,
  text: string,
  hidden: string,
  random: Random,
): { leaked: boolean; differs: boolean } {
  const bytes = Buffer.from(text);
  const whole = JSON.stringify(feed(redaction.redactor(), [bytes]));
  const offsets = Array.from({ length: 1 + random(8) }, () => random(bytes.length + 1));
  // Some cuts are close to each other, because most faults occur there.
  offsets.push(...offsets.map((offset) => Math.min(bytes.length, offset + random(4))));
  const pieces = feed(redaction.redactor(), cutAt(bytes, offsets));
  const restarted = random(4) === 0 ? feedRestarted(redaction, bytes, offsets[0]!) : pieces;
  return {
    leaked: [pieces, restarted].some(({ output }) => output.includes(Buffer.from(hidden).toString('latin1'))),
    differs:
      JSON.stringify(sorted(pieces)) !== JSON.stringify(sorted(JSON.parse(whole))) ||
      JSON.stringify(sorted(restarted)) !== JSON.stringify(sorted(pieces)),
  };
}

function sorted({ output, counts, blocked }: ReturnType<typeof feed>): unknown {
  return { output, counts: Object.entries(counts).sort(), blocked };
}

const CHARACTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const SPECIAL = `${CHARACTERS}!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~ éß密碼🔑`;

function makeSecret(random: Random): string {
  const from = [...pick(random, [CHARACTERS, SPECIAL, 'ab'])];
  const line = (least: number): string => Array.from({ length: least + random(30) }, () => pick(random, from)).join('');
  if (random(4) > 0) return `s${line(7)}s`;
  return Array.from({ length: 2 + random(4) }, () => `l${line(7)}l`).join('\n');
}

const NEIGHBOURS = [
  '\n',
  ' ',
  ': ',
  '="',
  "'",
  '-',
  '.',
  ',',
  '\r\n',
  '聯',
  'a',
  '0',
  '@',
  ':',
  '/',
  '',
  'AKI',
  'gh',
  '-----BEGIN ',
  'eyJ',
  '{{',
  'AB-1',
  'x@y.co',
  '10.0.0.1',
  '\t',
  'http://',
  'é',
];

const TOKENS = tokenSamples(seededRandom(7));

function surround(planted: string, random: Random): string {
  const some = (): string =>
    Array.from({ length: random(6) }, () =>
      random(12) === 0 ? pick(random, TOKENS).text : pick(random, NEIGHBOURS),
    ).join('');
  // Delimiters separate the secret from its neighbours, which could otherwise repeat a part of it.
  return `${some()}<${planted}>${some()}`;
}
