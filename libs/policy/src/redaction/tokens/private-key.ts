import type { Findings, Rule, ScanWindow } from '../source.ts';

export const PRIVATE_KEY_ANCHOR = '-----BEGIN ';
const ANCHOR_BYTES = Buffer.from(PRIVATE_KEY_ANCHOR);

const BEGIN = /^-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/;
const END = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/;
const MOST_BEGIN_BYTES = 80;
/** A line end, plain or escaped. JSON within JSON has several backslashes. */
const LINE_END = /\r?\n|(?:\\{1,8}r)?\\{1,8}n/g;
/** A line of a key, with text before and after it that loggers and programs print. */
const BODY_LINE = /^(?:.{0,80}[^A-Za-z0-9+/=])?[A-Za-z0-9+/=]{16,20000}[\s"'+,;\\|]{0,16}$/;
const SHORT_LINE = /^[\s"'>|]{0,40}[A-Za-z0-9+/=]{1,15}[\s"'+,;\\|]{0,16}$/;
/** `Proc-Type: 4,ENCRYPTED` and the like, and empty lines. */
const HEADER_LINE = /^[\s"'>|+]{0,40}(?:[A-Za-z-]{1,40}: .{0,200})?[\s"'+,;\\|]{0,16}$/;

/**
 * Finds a PEM private key. If its last line is missing, the finding ends with the last line that has the form of a
 * key's line.
 */
export function checkPrivateKey(rule: Rule, window: ScanWindow, at: number, findings: Findings): void {
  if (findings.covers(rule, at)) return;
  const text = window.latin1(at, Math.min(window.end, at + MOST_BEGIN_BYTES));
  const begin = BEGIN.exec(text);
  if (begin) {
    const end = findEnd(window, at, begin[0].length);
    if (end === 'open') findings.open(rule, at);
    else if (end !== undefined) findings.found(rule, at, at, at + end);
  } else if (!window.complete && text.length < MOST_BEGIN_BYTES && /^-----BEGIN [A-Z0-9 ]*-{0,4}$/.test(text)) {
    findings.open(rule, at);
  }
}

/**
 * Finds the end of the key. The search stops where another key begins, so that many first lines in a row take only
 * linear time.
 */
function findEnd(window: ScanWindow, at: number, bodyAt: number): number | 'open' | undefined {
  const { bytes, end, complete } = window;
  const next = bytes.subarray(at + bodyAt, end).indexOf(ANCHOR_BYTES);
  const last = next === -1 ? end : at + bodyAt + next;
  return endOfKey(window.latin1(at, last), bodyAt, complete || next !== -1);
}

function endOfKey(text: string, bodyAt: number, complete: boolean): number | 'open' | undefined {
  let keyEnd: number | undefined;
  let short = false;
  for (const line of linesFrom(text, bodyAt)) {
    const last = END.exec(line.text);
    if (last) return line.at + last.index + last[0].length;
    if (!line.ended && !complete) return 'open';
    if (short) return keyEnd;
    if (BODY_LINE.test(line.text)) keyEnd = line.at + line.text.length;
    else if (SHORT_LINE.test(line.text)) short = true;
    else if (!HEADER_LINE.test(line.text)) return keyEnd;
  }
  return keyEnd;
}

function* linesFrom(text: string, from: number): Generator<{ at: number; text: string; ended: boolean }> {
  let at = from;
  for (;;) {
    LINE_END.lastIndex = at;
    const end = LINE_END.exec(text);
    if (end === null) break;
    yield { at, text: text.slice(at, end.index), ended: true };
    at = end.index + end[0].length;
  }
  yield { at, text: text.slice(at), ended: false };
}
