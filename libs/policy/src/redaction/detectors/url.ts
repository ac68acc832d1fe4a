import { ALPHANUMERICS, byteSet, indexOfByte, LETTERS, runEnd, runStart } from '../bytes.ts';
import type { Findings, Rule, Source, View } from '../source.ts';

const SCHEMES = new Set(['http', 'https', 'ftp', 'ftps', 'ws', 'wss']);
const SCHEME_CHARS = byteSet('A-Za-z');
const MOST_SCHEME = 6;
const HOST = byteSet('A-Za-z0-9.-');
const MOST_HOST = 253;
const NOT_BEFORE_HOST = byteSet('A-Za-z0-9_.@/:%-');
/** The characters of RFC 3986. An address ends at blanks, quotes, angle brackets and characters that are not ASCII. */
const URL_CHARS = byteSet(String.raw`A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%`);
const TRAILING = byteSet(`.,;:!?'*`);
const OPENING = new Map([
  [0x29, 0x28],
  [0x5d, 0x5b],
]);
const MOST_URL = 8192;
const COLON = 0x3a;
const SLASH = 0x2f;
const W = 0x77;
/** Top-level domains that tell an address without a scheme from a path. Country codes that are also file extensions are left out. */
const TOP_LEVELS = new Set(
  'com org net io dev app info biz edu gov mil int ai co uk de fr nl eu us ca au jp cn in br ru ch at be se no fi dk pl es it cz cloud tech online site xyz'.split(
    ' ',
  ),
);

/** http(s), ftp and ws addresses. Without a scheme: those that begin with `www.`, and hosts with a path. */
export function urls(rule: Rule): Source {
  return {
    scan(view, findings) {
      scanSchemes(rule, view, findings);
      scanHosts(rule, view, findings);
      if (!view.complete) openAtEnd(rule, view, findings);
    },
    mayReadLeftOf: (bytes, at) => ALPHANUMERICS[bytes[at]!] === 1,
  };
}

function scanSchemes(rule: Rule, view: View, findings: Findings): void {
  const { bytes, from, to, end } = view;
  const last = Math.min(end, to + MOST_SCHEME);
  for (let at = indexOfByte(bytes, COLON, from, last); at < last; at = indexOfByte(bytes, COLON, at + 1, last)) {
    if (bytes[at + 1] !== SLASH || bytes[at + 2] !== SLASH || at + 3 > end) continue;
    const start = runStart(bytes, at, Math.max(from, at - MOST_SCHEME), SCHEME_CHARS);
    if (start >= to || ALPHANUMERICS[bytes[start - 1]!] === 1) continue;
    if (!SCHEMES.has(bytes.toString('latin1', start, at).toLowerCase())) continue;
    at = report(rule, view, start, at + 3, findings) - 1;
  }
}

/** Addresses without a scheme: `host/` or `www.host`. */
function scanHosts(rule: Rule, view: View, findings: Findings): void {
  const { bytes, from, to, end } = view;
  // Of the slashes from `to` on only the first can end a host that begins before `to`.
  const lastSlash = Math.min(end, indexOfByte(bytes, SLASH, to, Math.min(end, to + MOST_HOST)) + 1);
  for (
    let slash = indexOfByte(bytes, SLASH, from, lastSlash);
    slash < lastSlash;
    slash = indexOfByte(bytes, SLASH, slash + 1, lastSlash)
  ) {
    if (slash === from || LETTERS[bytes[slash - 1]!] === 0) continue;
    const start = runStart(bytes, slash, Math.max(from, slash - MOST_HOST - 1), HOST);
    if (start >= to || !isHostStart(bytes, start) || slash - start > MOST_HOST) continue;
    const host = bytes.toString('latin1', start, slash).toLowerCase();
    if (host.includes('.') && TOP_LEVELS.has(host.slice(host.lastIndexOf('.') + 1)))
      report(rule, view, start, slash, findings);
  }
  for (let at = indexOfByte(bytes, W, from, to); at < to; at = indexOfByte(bytes, W, at + 1, to)) {
    if (!isHostStart(bytes, at) || at + 4 > end || bytes.toString('latin1', at, at + 4) !== 'www.') continue;
    at = report(rule, view, at, at + 4, findings) - 1;
  }
}

function isHostStart(bytes: Uint8Array, at: number): boolean {
  return ALPHANUMERICS[bytes[at]!] === 1 && NOT_BEFORE_HOST[bytes[at - 1]!] === 0;
}

/** Reports the address that begins at `start`. It must extend beyond `minimum`. Returns its end. */
function report(
  rule: Rule,
  { bytes, end, complete }: View,
  start: number,
  minimum: number,
  findings: Findings,
): number {
  const run = runEnd(bytes, minimum, Math.min(end, start + MOST_URL), URL_CHARS);
  if (run === end && !complete) {
    findings.open(rule, start);
    return end;
  }
  const last = trim(bytes, minimum, run);
  if (last > minimum) findings.found(rule, start, start, last);
  return last;
}

/** A comma, a full stop or an unmatched closing bracket at the end belongs to the sentence around the address. */
function trim(bytes: Buffer, from: number, end: number): number {
  // For each kind of bracket: how many more are closed than opened.
  const extra = new Map<number, number>();
  let last = end;
  for (; last > from; last -= 1) {
    const byte = bytes[last - 1]!;
    if (TRAILING[byte] === 1) continue;
    const opening = OPENING.get(byte);
    if (opening === undefined) break;
    const surplus = extra.get(byte) ?? unopened(bytes.toString('latin1', from, last), byte, opening);
    if (surplus <= 0) break;
    extra.set(byte, surplus - 1);
  }
  return last;
}

function unopened(text: string, closing: number, opening: number): number {
  return text.split(String.fromCharCode(closing)).length - text.split(String.fromCharCode(opening)).length;
}

/** Reports as open a last word that may be a host, or a scheme with a part of `://`. */
function openAtEnd(rule: Rule, { bytes, from, to, end }: View, findings: Findings): void {
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
