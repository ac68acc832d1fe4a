import { WORD } from '../bytes.ts';
import type { View } from '../source.ts';
import { consumes, OP, type Pattern, type Program } from './program.ts';

/**
 * Where the text at the end of [from, end) begins that may still become a match when more text comes; `end` if there is
 * none before a first match that no text can change, or none at all.
 *
 * Pike's machine, with the start of each thread instead of its groups: re2js says what matches, but not what still may.
 */
export function openStart({ program, firstByte }: Pattern, view: OpenView, from: number): number {
  const { bytes, end } = view;
  let threads = new ThreadList(program);
  let next = new ThreadList(program);
  for (let at = from; at < end; ) {
    if (threads.size === 0) {
      if (threads.matched) return end;
      if (firstByte !== undefined) at = bytes.indexOf(firstByte, at);
      if (at === -1 || at >= end) return end;
    }
    if (!threads.matched) threads.add(program.start, at, aroundOf(view, at));
    const { rune, length } = characterAt(bytes, at, end);
    at += length;
    const around = aroundOf(view, at);
    next.clear(threads.matched);
    for (let index = 0; index < threads.size && !next.cut; index += 1) {
      const instruction = program.inst[threads.pcs[index]!]!;
      if (consumes(instruction, rune)) next.add(instruction.out, threads.starts[index]!, around);
    }
    [threads, next] = [next, threads];
  }
  return threads.earliestStart(end);
}

type OpenView = Pick<View, 'bytes' | 'leftFrom' | 'end'>;

/** What a place between two characters is: re2's flags for `^ $ \A \z \b \B`; undefined where the right one is unknown. */
type Around = number | undefined;

/** Threads in order of preference. Those behind one that matched are cut: it is preferred to all of them. */
class ThreadList {
  readonly #program: Program;
  readonly #added: Uint32Array;
  readonly #waiting: number[] = [];
  #generation = 1;
  readonly pcs: Uint32Array;
  readonly starts: Uint32Array;
  size = 0;
  /** Whether there was a match, here or at an earlier place. */
  matched = false;
  cut = false;

  constructor(program: Program) {
    this.#program = program;
    this.#added = new Uint32Array(program.inst.length);
    this.pcs = new Uint32Array(program.inst.length);
    this.starts = new Uint32Array(program.inst.length);
  }

  clear(matched: boolean): void {
    this.size = 0;
    this.matched = matched;
    this.cut = false;
    this.#generation += 1;
  }

  add(first: number, start: number, around: Around): void {
    const waiting = this.#waiting;
    waiting.length = 0;
    waiting.push(first);
    while (waiting.length > 0) {
      const pc = waiting.pop()!;
      if (this.#added[pc] === this.#generation) continue;
      this.#added[pc] = this.#generation;
      const { op, out, arg } = this.#program.inst[pc]!;
      if (op === OP.match) {
        this.matched = true;
        this.cut = true;
        return;
      }
      if (op === OP.alt || op === OP.altMatch) waiting.push(arg, out);
      else if (op === OP.capture || op === OP.nop) waiting.push(out);
      else if (op === OP.emptyWidth && around !== undefined) {
        if ((arg & ~around) === 0) waiting.push(out);
      } else if (op !== OP.fail) this.#push(pc, start);
    }
  }

  #push(pc: number, start: number): void {
    this.pcs[this.size] = pc;
    this.starts[this.size] = start;
    this.size += 1;
  }

  earliestStart(end: number): number {
    return this.starts.subarray(0, this.size).reduce((earliest, start) => Math.min(earliest, start), end);
  }
}

const NEWLINE = 0x0a;
const FLAGS = { lineBegins: 1, lineEnds: 2, textBegins: 4, wordBorder: 16, noWordBorder: 32 };

function aroundOf({ bytes, leftFrom, end }: OpenView, at: number): Around {
  if (at === end) return undefined;
  const left = bytes[at - 1]!;
  const right = bytes[at]!;
  let flags = WORD[left] === WORD[right] ? FLAGS.noWordBorder : FLAGS.wordBorder;
  if (at === leftFrom) flags |= FLAGS.textBegins;
  if (left === NEWLINE) flags |= FLAGS.lineBegins;
  if (right === NEWLINE) flags |= FLAGS.lineEnds;
  return flags;
}

const NO_CHARACTER = { rune: 0xfffd, length: 1 };
const ASCII = Array.from({ length: 128 }, (_, rune) => ({ rune, length: 1 }));

/** As re2js reads UTF-8: a byte that is not part of a character counts as one character. */
function characterAt(bytes: Buffer, at: number, end: number): { rune: number; length: number } {
  const first = bytes[at]!;
  if (first < 0x80) return ASCII[first]!;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > end) return NO_CHARACTER;
  const text = bytes.toString('utf8', at, at + length);
  const rune = text.codePointAt(0)!;
  return text.length === (rune > 0xffff ? 2 : 1) && rune !== 0xfffd ? { rune, length } : NO_CHARACTER;
}
