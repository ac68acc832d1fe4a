import { ALPHANUMERICS, byteSet, indexOfByte, LETTERS, runEnd, runStart } from '../bytes.ts';
import type { Findings, Rule, Source, View } from '../source.ts';

const SCHEMES = new Set(['http', 'https', 'ftp', 'ftps', 'ws', 'wss']);
const SCHEME_CHARS = byteSet('A-Za-z');
const MOST_SCHEME = 6;
const HOST = byteSet('A-Za-z0-9.-');
const MOST_HOST = 253;
const NOT_BEFORE_HOST = byteSet('A-Za-z0-9_.@/:%-');
/** What RFC 3986 lets stand in an address; it ends at blanks, quotes, angle brackets and everything that is not ASCII. */
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
/** Without a scheme an address is told from a path by its last label; no country whose code is a file's ending. */
const TOP_LEVELS = new Set(
  'com org net io dev app info biz edu gov mil int ai co uk de fr nl eu us ca au jp cn in br ru ch at be se no fi dk pl es it cz cloud tech online site xyz'.split(
    ' ',
  ),
);

/** http(s), ftp and ws addresses; without a scheme those that begin with `www.` or are a host with a path. */
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

/** A host is seen by what follows it or by how it begins: `host/`, `www.host`. */
function scanHosts(rule: Rule, view: View, findings: Findings): void {
  const { bytes, from, to, end } = view;
  // Behind the first slash from `to` on every host begins behind `to`.
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

/** [start, minimum) is the beginning of an address; there has to be more behind it. Answers with where it ends. */
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

/** A comma, a full stop or a closing bracket that was not opened belongs to the sentence around the address. */
function trim(bytes: Buffer, from: number, end: number): number {
  // Of each kind of bracket: how many more are closed than opened, from the first one at the end on.
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

/** A scheme with a part of `://`, or what may be a host: the last word. */
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
