import type { ByteSet } from './bytes.ts';
import type { Findings, Rule, ScanWindow, Source } from './source.ts';
import type { AnchorBits, PairTable } from './spots.ts';

/** A text that is searched for literally, and the check that then decides whether it is a finding. */
export interface Anchor {
  rule: Rule;
  /** At least three bytes. */
  bytes: Uint8Array;
  /** Whether letters match in either case. */
  fold?: boolean;
  /** Bytes before the anchor that exclude a finding. */
  notAfter?: ByteSet;
  /**
   * Checks whether the text at the anchor, which begins at `at`, is a finding. Without `check`, the anchor alone is the
   * finding.
   */
  check?(window: ScanWindow, at: number, findings: Findings): void;
}

const HASH_FACTOR = 0x9e3779b1;
/** Most bits of a hash, so that an item of #heads (16 bits) can number every chain. */
const MOST_BITS = 15;

/** Searches for thousands of anchors in one pass, with a hash table of their first three bytes. */
export class AnchorScan implements Source {
  readonly #anchors: readonly Anchor[];
  readonly #spot: AnchorBits;
  readonly #readsLeft: boolean;
  readonly #shift: number;
  /** Hash of three bytes → index in #chains, or 0 if there is no chain. */
  readonly #heads: Uint16Array;
  readonly #chains: { trigram: number; anchors: Anchor[] }[][] = [[]];
  /** Anchors by their first byte and by their first two bytes, for anchors that are cut off at the end of the text. */
  readonly #byPrefix = new Map<number, Anchor[]>();

  constructor(anchors: readonly Anchor[], spot: AnchorBits) {
    this.#anchors = anchors;
    this.#spot = spot;
    this.#readsLeft = anchors.some(({ notAfter }) => notAfter !== undefined);
    const bits = Math.min(MOST_BITS, Math.max(12, 6 + Math.ceil(Math.log2(anchors.length + 1))));
    this.#shift = 32 - bits;
    this.#heads = new Uint16Array(2 ** bits);
    for (const anchor of anchors) for (const trigram of trigramsOf(anchor)) this.#add(trigram, anchor);
  }

  #add(trigram: number, anchor: Anchor): void {
    const hash = Math.imul(trigram, HASH_FACTOR) >>> this.#shift;
    if (this.#heads[hash] === 0) this.#heads[hash] = this.#chains.push([]) - 1;
    const chain = this.#chains[this.#heads[hash]!]!;
    const same = chain.find((entry) => entry.trigram === trigram);
    if (same) same.anchors.push(anchor);
    else chain.push({ trigram, anchors: [anchor] });
    for (const prefix of [trigram >> 16, 0x10000 | (trigram >> 8)]) {
      const known = this.#byPrefix.get(prefix) ?? [];
      if (known.at(-1) !== anchor) known.push(anchor);
      this.#byPrefix.set(prefix, known);
    }
  }

  /**
   * Marks the first two bytes of each anchor, for an anchor at an even offset, and its second and third bytes, for an
   * odd offset.
   */
  mark(pairs: PairTable): void {
    for (const { trigram } of this.#chains.flat()) {
      pairs.add(trigram >> 16, (trigram >> 8) & 0xff, this.#spot.here);
      pairs.add((trigram >> 8) & 0xff, trigram & 0xff, this.#spot.before);
    }
  }

  scan(window: ScanWindow, findings: Findings): void {
    if (this.#anchors.length === 0) return;
    const { bytes, from, to, end, anchorSpots: spots } = window;
    const { here, before } = this.#spot;
    const either = here | before;
    const last = Math.min(to, end - 2);
    const [heads, shift] = [this.#heads, this.#shift];
    for (let index = spots.next(0, either); index < spots.count; index = spots.next(index + 1, either)) {
      const at = spots.at[index]!;
      const bits = spots.bits[index]!;
      const middle = (bytes[at]! << 8) | bytes[at + 1]!;
      if ((bits & before) !== 0 && at - 1 >= from && at - 1 < last) {
        const trigram = (bytes[at - 1]! << 16) | middle;
        const head = heads[Math.imul(trigram, HASH_FACTOR) >>> shift]!;
        if (head !== 0) this.#look(window, at - 1, trigram, head, findings);
      }
      if ((bits & here) !== 0 && at >= from && at < last) {
        const trigram = (middle << 8) | bytes[at + 2]!;
        const head = heads[Math.imul(trigram, HASH_FACTOR) >>> shift]!;
        if (head !== 0) this.#look(window, at, trigram, head, findings);
      }
      // The text after an open start is searched again later, when it is known whether the start is a finding.
      if (at > findings.openAt) break;
    }
    if (!window.complete) this.#openAtEnd(window, findings);
  }

  mayReadLeftOf(bytes: Buffer, at: number, end: number): boolean {
    if (!this.#readsLeft || at + 2 >= end) return this.#readsLeft;
    const trigram = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    const head = this.#heads[Math.imul(trigram, HASH_FACTOR) >>> this.#shift]!;
    if (head === 0) return false;
    const same = this.#chains[head]!.find((entry) => entry.trigram === trigram);
    return same?.anchors.some(({ notAfter }) => notAfter !== undefined) ?? false;
  }

  #look(window: ScanWindow, at: number, trigram: number, head: number, findings: Findings): void {
    for (const entry of this.#chains[head]!) {
      if (entry.trigram !== trigram) continue;
      if (at > findings.openAt) return;
      for (const anchor of entry.anchors) checkAnchor(anchor, window, at, findings);
    }
  }

  /** Reports a start in the last two bytes as open if an anchor may begin there. The hash table needs three bytes. */
  #openAtEnd({ bytes, from, to, end }: ScanWindow, findings: Findings): void {
    for (let at = Math.max(from, end - 2); at < Math.min(to, end); at += 1) {
      const prefix = at === end - 1 ? bytes[at]! : 0x10000 | (bytes[at]! << 8) | bytes[at + 1]!;
      const left = bytes[at - 1]!;
      const possible = this.#byPrefix.get(prefix)?.find(({ notAfter }) => notAfter?.[left] !== 1);
      if (possible) {
        findings.open(possible.rule, at);
        return;
      }
    }
  }
}

function checkAnchor(anchor: Anchor, window: ScanWindow, at: number, findings: Findings): void {
  if (anchor.notAfter?.[window.bytes[at - 1]!] === 1) return;
  const here = compare(anchor, window, at);
  if (here === 'other') return;
  if (here === 'unfinished') {
    if (!window.complete) findings.open(anchor.rule, at);
  } else if (anchor.check) anchor.check(window, at, findings);
  else findings.found(anchor.rule, at, at, at + anchor.bytes.length);
}

function compare(
  { bytes: wanted, fold }: Anchor,
  { bytes, end }: ScanWindow,
  at: number,
): 'same' | 'other' | 'unfinished' {
  const shown = Math.min(wanted.length, end - at);
  for (let index = 3; index < shown; index += 1) {
    const byte = bytes[at + index]!;
    if (byte !== wanted[index] && !(fold && otherCase(byte) === wanted[index])) return 'other';
  }
  return shown < wanted.length ? 'unfinished' : 'same';
}

function trigramsOf({ bytes, fold }: Anchor): number[] {
  const choices = [0, 1, 2].map((index) => [
    ...new Set([bytes[index]!, fold ? otherCase(bytes[index]!) : bytes[index]!]),
  ]);
  return choices[0]!.flatMap((a) => choices[1]!.flatMap((b) => choices[2]!.map((c) => (a << 16) | (b << 8) | c)));
}

function otherCase(byte: number): number {
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x7a ? byte ^ 0x20 : byte;
}
