import { ALPHANUMERICS, ANY, byteSet, indexOfByte, LETTERS, runEnd, runStart } from '../bytes.ts';
import { KnownRun } from '../known-run.ts';
import type { Findings, Rule, ScanWindow, Source } from '../source.ts';
import { SPOT } from '../spots.ts';

const SCHEMES = codesOf('http https ftp ftps ws wss');
const SCHEME_CHARS = byteSet('A-Za-z');
const MOST_SCHEME = 6;
const HOST = byteSet('A-Za-z0-9.-');
const MOST_HOST = 253;
const NOT_BEFORE_HOST = byteSet('A-Za-z0-9_.@/:%-');
/** The characters of RFC 3986. An address ends at blanks, quotes, angle brackets and characters outside ASCII. */
const URL_CHARS = byteSet(String.raw`A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%`);
/** The last run of these characters, which is read once even if many addresses begin in it. */
const URL_RUN = new KnownRun(URL_CHARS);
const TRAILING = byteSet(`.,;:!?'*`);
const [OPENING_ROUND, CLOSING_ROUND, OPENING_SQUARE, CLOSING_SQUARE] = [0x28, 0x29, 0x5b, 0x5d];
const MOST_URL = 8192;
const COLON = 0x3a;
const SLASH = 0x2f;
const W = 0x77;
const DOT = 0x2e;
const SLASHES = byteSet('/');
/**
 * Top-level domains that distinguish an address without a scheme from a path. Those that are file extensions are left
 * out.
 */
const TOP_LEVELS = codesOf(
  'com org net io dev app info biz edu gov mil int ai co uk de fr nl eu us ca au jp cn in br ru ch at be se no fi dk pl es it cz cloud tech online site xyz',
);
const MOST_TOP_LEVEL = 6;

/**
 * Finds http(s), ftp and ws addresses. Without a scheme, finds addresses that begin with `www.`, and hosts with a path.
 */
export function urls(rule: Rule): Source {
  return {
    /**
     * Marks bytes 1 and 2, and bytes 2 and 3, of `://` and of `www.`. Marks a slash after a letter whether it is the
     * first or the second byte of a pair.
     */
    mark(pairs) {
      pairs.add(COLON, SLASH, SPOT.url);
      pairs.addAll(LETTERS, SLASHES, SPOT.url);
      pairs.addAll(SLASHES, ANY, SPOT.url);
      pairs.add(W, W, SPOT.url);
    },
    scan(window, findings) {
      const { spots } = window;
      const search = new Search(rule, window, findings);
      for (let index = spots.next(0, SPOT.url); index < spots.count; index = spots.next(index + 1, SPOT.url))
        search.look(spots.at[index]!);
      if (!window.complete) openAtEnd(rule, window, findings);
    },
    mayReadLeftOf(bytes, at, end) {
      if (ALPHANUMERICS[bytes[at]!] === 0) return false;
      const host = runEnd(bytes, at, Math.min(end, at + MOST_HOST + 1), HOST);
      return host === end || bytes[host] === COLON || bytes[host] === SLASH || bytes[at] === W;
    },
  };
}

/** One search of one window. */
class Search {
  readonly #rule: Rule;
  readonly #window: ScanWindow;
  readonly #findings: Findings;
  readonly #lastSlash: number;
  /** Ends of the last address that began with a scheme, and of the last one that began with `www.`. */
  #schemeEnd = 0;
  #wwwEnd = 0;
  constructor(rule: Rule, window: ScanWindow, findings: Findings) {
    const { bytes, to, end } = window;
    this.#rule = rule;
    this.#window = window;
    this.#findings = findings;
    // Among the slashes from `to` on, only the first can end a host that begins before `to`.
    this.#lastSlash = to >= end ? end : Math.min(end, indexOfByte(bytes, SLASH, to, Math.min(end, to + MOST_HOST)) + 1);
  }

  /** Looks for an address near the pair of bytes at `at`. */
  look(at: number): void {
    const { bytes } = this.#window;
    const first = bytes[at];
    const second = bytes[at + 1];
    if (first === W && second === W) {
      if (bytes[at - 1] === W) this.#lookAtWww(at - 1);
      this.#lookAtWww(at);
      return;
    }
    if (second === SLASH) {
      if (first === COLON) this.#lookAtScheme(at);
      else if (first === SLASH && bytes[at - 1] === COLON) this.#lookAtScheme(at - 1);
      else if (LETTERS[first!] === 1) this.#lookAtHost(at + 1);
    }
    if (first === SLASH && LETTERS[bytes[at - 1]!] === 1) this.#lookAtHost(at);
  }

  #lookAtScheme(at: number): void {
    const { bytes, from, to, end } = this.#window;
    if (at < Math.max(from, this.#schemeEnd) || at >= Math.min(end, to + MOST_SCHEME)) return;
    if (bytes[at + 1] !== SLASH || bytes[at + 2] !== SLASH || at + 3 > end) return;
    const start = runStart(bytes, at, Math.max(from, at - MOST_SCHEME), SCHEME_CHARS);
    if (start >= to || ALPHANUMERICS[bytes[start - 1]!] === 1) return;
    if (SCHEMES.has(codeOf(bytes, start, at))) this.#schemeEnd = this.#report(start, at + 3);
  }

  #lookAtWww(at: number): void {
    const { bytes, from, to, end } = this.#window;
    if (at < Math.max(from, this.#wwwEnd) || at >= to || at + 4 > end) return;
    if (bytes[at + 2] !== W || bytes[at + 3] !== DOT || !isHostStart(bytes, at)) return;
    this.#wwwEnd = this.#report(at, at + 4);
  }

  /** Checks for an address without a scheme: `host/`, where the slash is at `slash`. */
  #lookAtHost(slash: number): void {
    const { bytes, from, to } = this.#window;
    if (slash <= from || slash >= this.#lastSlash) return;
    const name = runStart(bytes, slash, Math.max(from, slash - MOST_TOP_LEVEL), LETTERS);
    if (name <= from || bytes[name - 1] !== DOT || !TOP_LEVELS.has(codeOf(bytes, name, slash))) return;
    const start = runStart(bytes, slash, Math.max(from, slash - MOST_HOST - 1), HOST);
    if (start >= to || !isHostStart(bytes, start) || slash - start > MOST_HOST) return;
    this.#report(start, slash);
  }

  /** Reports the address that begins at `start`, if it extends beyond `minimum`. Returns its end. */
  #report(start: number, minimum: number): number {
    const { bytes, end, complete } = this.#window;
    const run = URL_RUN.end(this.#window, minimum, Math.min(end, start + MOST_URL));
    if (run === end && !complete) {
      this.#findings.open(this.#rule, start);
      return end;
    }
    const last = trim(bytes, minimum, run);
    if (last > minimum) this.#findings.found(this.#rule, start, start, last);
    return last;
  }
}

function isHostStart(bytes: Uint8Array, at: number): boolean {
  return ALPHANUMERICS[bytes[at]!] === 1 && NOT_BEFORE_HOST[bytes[at - 1]!] === 0;
}

/**
 * Removes a comma, a full stop or an unmatched closing bracket from the end, because it belongs to the sentence around
 * the address.
 */
function trim(bytes: Uint8Array, from: number, end: number): number {
  // For each kind of bracket, the number of closing brackets minus the number of opening ones.
  let extra: Map<number, number> | undefined;
  let last = end;
  for (; last > from; last -= 1) {
    const byte = bytes[last - 1]!;
    if (TRAILING[byte] === 1) continue;
    if (byte !== CLOSING_ROUND && byte !== CLOSING_SQUARE) break;
    const surplus = extra?.get(byte) ?? unopened(bytes, from, last, byte);
    if (surplus <= 0) break;
    extra ??= new Map();
    extra.set(byte, surplus - 1);
  }
  return last;
}

function unopened(bytes: Uint8Array, from: number, to: number, closing: number): number {
  const opening = closing === CLOSING_ROUND ? OPENING_ROUND : OPENING_SQUARE;
  let surplus = 0;
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at];
    surplus += (byte === closing ? 1 : 0) - (byte === opening ? 1 : 0);
  }
  return surplus;
}

/** Returns a number that identifies a word of at most six letters, in either case. */
function codeOf(bytes: Uint8Array, from: number, to: number): number {
  let code = 0;
  for (let at = from; at < to; at += 1) code = (code << 5) | (bytes[at]! & 0x1f);
  return code;
}

function codesOf(words: string): ReadonlySet<number> {
  return new Set(words.split(' ').map((word) => codeOf(Buffer.from(word), 0, word.length)));
}

/** Reports as open a last word that may be a host, or a scheme with a part of `://`. */
function openAtEnd(rule: Rule, { bytes, from, to, end }: ScanWindow, findings: Findings): void {
  let wordEnd = end;
  while (wordEnd > Math.max(from, end - 2) && (bytes[wordEnd - 1] === SLASH || bytes[wordEnd - 1] === COLON))
    wordEnd -= 1;
  const isScheme = wordEnd < end && bytes[wordEnd] === COLON;
  const wordStart = runStart(bytes, wordEnd, Math.max(from, wordEnd - MOST_HOST - 1), HOST);
  if (wordEnd < end && !isScheme) return;
  for (let at = wordStart; at < Math.min(to, wordEnd); at += 1) {
    if (ALPHANUMERICS[bytes[at]!] === 0 || ALPHANUMERICS[bytes[at - 1]!] === 1) continue;
    if (isScheme && wordEnd - at > MOST_SCHEME) continue;
    findings.open(rule, at);
    return;
  }
}
