import { type Anchor, AnchorScan } from '../anchor-scan.ts';
import { KnownRun } from '../known-run.ts';
import type { Findings, Rule, ScanWindow, Source } from '../source.ts';
import { TOKEN_ANCHOR_BITS } from '../spots.ts';
import { CLOUDS } from './kinds/clouds.ts';
import { CODE_HOSTS } from './kinds/code-hosts.ts';
import { GENERAL_TOKEN_KINDS } from './kinds/general.ts';
import { SERVICES } from './kinds/services.ts';
import { checkPrivateKey, PRIVATE_KEY_ANCHOR } from './private-key.ts';
import { MOST_TOKEN_BYTES, TOKEN_CHARS, type TokenKind } from './token-kind.ts';

const KINDS: readonly TokenKind[] = [...CODE_HOSTS, ...CLOUDS, ...SERVICES, ...GENERAL_TOKEN_KINDS];
const PRIVATE_KEY = 'private_key';

export const TOKEN_TYPES: ReadonlySet<string> = new Set([PRIVATE_KEY, ...KINDS.map(({ type }) => type)]);

/** First rank of tokens, which is higher than the rank of any rule of a session. */
const FIRST_RANK = 2_000;

let shared: AnchorScan | undefined;

/** Returns sources that find well-known tokens. `given` has the rules for types that are not simply redacted. */
export function tokens(given: ReadonlyMap<string, Rule>, others: 'too' | 'not'): Source[] {
  if (given.size === 0) {
    if (others === 'not') return [];
    shared ??= new AnchorScan(anchorsOf(given, others), TOKEN_ANCHOR_BITS);
    return [shared];
  }
  return [new AnchorScan(anchorsOf(given, others), TOKEN_ANCHOR_BITS)];
}

function anchorsOf(given: ReadonlyMap<string, Rule>, others: 'too' | 'not'): Anchor[] {
  const ruleOf = (type: string, rank: number): Rule => given.get(type) ?? { type, strategy: 'redact', rank };
  const wanted = (type: string): boolean => others === 'too' || given.has(type);
  const anchors = KINDS.filter(({ type }) => wanted(type)).flatMap((kind, index) =>
    anchorsOfKind(kind, ruleOf(kind.type, FIRST_RANK + 1 + index)),
  );
  if (wanted(PRIVATE_KEY)) anchors.push(privateKeyAnchor(ruleOf(PRIVATE_KEY, FIRST_RANK)));
  return anchors;
}

function privateKeyAnchor(rule: Rule): Anchor {
  const check = (window: ScanWindow, at: number, findings: Findings): void =>
    checkPrivateKey(rule, window, at, findings);
  return { rule, bytes: Buffer.from(PRIVATE_KEY_ANCHOR), check };
}

function anchorsOfKind(kind: TokenKind, rule: Rule): Anchor[] {
  const { fold = false, notAfter } = kind;
  const run = new KnownRun(kind.chars ?? TOKEN_CHARS);
  return kind.anchors.map((anchor) => ({
    rule,
    bytes: Buffer.from(anchor),
    fold,
    ...(notAfter && { notAfter }),
    check: (window, at, findings) => check(kind, run, anchor.length, rule, window, at, findings),
  }));
}

function check(
  kind: TokenKind,
  known: KnownRun,
  anchorBytes: number,
  rule: Rule,
  window: ScanWindow,
  at: number,
  findings: Findings,
): void {
  // A token contains no other token of its kind, so anchors inside it are skipped. Otherwise many anchors would take
  // quadratic time.
  if (findings.covers(rule, at)) return;
  const { end, complete } = window;
  const behind = at + anchorBytes;
  const run = known.end(window, behind, Math.min(end, behind + (kind.most ?? MOST_TOKEN_BYTES)));
  const text = window.latin1(at, run);
  if (run === end && !complete && (kind.viable?.test(text) ?? true)) {
    findings.open(rule, at);
    return;
  }
  const match = kind.shape.exec(text);
  if (!match) return;
  const start = match.groups?.keep?.length ?? 0;
  if (isPlaceholder(match[0].slice(Math.max(start, anchorBytes)))) return;
  findings.found(rule, at, at + start, at + match[0].length);
}

/** Tells whether the text is a placeholder that documentation shows instead of a token. */
function isPlaceholder(text: string): boolean {
  return /^(?:[xX*._-]+|\.{3}|<.*>)$/.test(text);
}
