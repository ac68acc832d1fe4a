import { indexOfByte, WORD } from '../bytes.ts';
import type { ScanWindow } from '../source.ts';
import { consumes, OP, type Pattern, type Program } from './program.ts';

// The numbers are copied into constants of this module, because they are read for every character.
const { ALT, ALT_MATCH, CAPTURE, EMPTY_WIDTH, MATCH, NOP, RUNE } = OP;

/**
 * Result of a search: the first match from an offset on, or the start of text that later input may complete to a match,
 * or neither.
 */
export type SearchResult =
  | { type: 'match'; start: number; end: number }
  | { type: 'open'; at: number }
  | { type: 'none' };

type Text = Pick<ScanWindow, 'bytes' | 'leftFrom' | 'end' | 'complete'>;

/**
 * Pike's virtual machine for a program of re2js. Threads store the start of their match instead of capture groups.
 * re2js itself does not report incomplete matches, and its time per match is proportional to the whole text.
 */
export class PatternMachine {
  readonly #pattern: Pattern;
  #threads: ThreadList;
  #next: ThreadList;

  constructor(pattern: Pattern) {
    this.#pattern = pattern;
    this.#threads = new ThreadList(pattern.program);
    this.#next = new ThreadList(pattern.program);
  }

  /** Searches for matches that begin in [from, to). */
  run(text: Text, from: number, to: number): SearchResult {
    const { program, firstByte } = this.#pattern;
    const { bytes, end, complete } = text;
    this.#threads.clear(undefined);
    for (let at = from; at < end; ) {
      if (this.#threads.size === 0) {
        if (this.#threads.match) break;
        if (firstByte !== undefined) at = indexOfByte(bytes, firstByte, at, to);
        if (at >= to) break;
      }
      if (!this.#threads.match && at < to) this.#threads.add(program.start, at, at, aroundOf(text, at));
      const { rune, length } = characterAt(bytes, at, end);
      at += length;
      this.#step(rune, at, aroundOf(text, at));
    }
    const { match, size } = this.#threads;
    if (size > 0 && !complete) return { type: 'open', at: this.#threads.earliestStart(end) };
    return match ? { type: 'match', ...match } : { type: 'none' };
  }

  #step(rune: number, at: number, around: Around): void {
    const { program, consumesAscii } = this.#pattern;
    const threads = this.#threads;
    const next = this.#next;
    next.clear(threads.match);
    for (let index = 0; index < threads.size && !next.cut; index += 1) {
      const pc = threads.pcs[index]!;
      const goesOn = rune < 128 ? consumesAscii[128 * pc + rune] === 1 : consumes(program.inst[pc]!, rune);
      if (goesOn) next.add(program.inst[pc]!.out, threads.starts[index]!, at, around);
    }
    this.#threads = next;
    this.#next = threads;
  }
}

/** re2's flags for `^ $ \A \z \b \B` between two characters; undefined while the right character is not known. */
type Around = number | undefined;

/** Threads in order of preference. When a thread matches, the threads after it are dropped. */
class ThreadList {
  readonly #program: Program;
  readonly #added: Uint32Array;
  readonly #waiting: number[] = [];
  #generation = 1;
  readonly pcs: Uint32Array;
  readonly starts: Uint32Array;
  size = 0;
  /** The preferred match so far. */
  match: { start: number; end: number } | undefined;
  cut = false;

  constructor(program: Program) {
    this.#program = program;
    this.#added = new Uint32Array(program.inst.length);
    this.pcs = new Uint32Array(program.inst.length);
    this.starts = new Uint32Array(program.inst.length);
  }

  clear(match: ThreadList['match']): void {
    this.size = 0;
    this.match = match;
    this.cut = false;
    this.#generation += 1;
  }

  add(first: number, start: number, at: number, around: Around): void {
    const waiting = this.#waiting;
    for (let pc: number | undefined = first; pc !== undefined; pc = waiting.pop()) {
      if (this.#added[pc] === this.#generation) continue;
      this.#added[pc] = this.#generation;
      const { op, out, arg } = this.#program.inst[pc]!;
      if (op >= RUNE) this.#push(pc, start);
      else if (op === ALT || op === ALT_MATCH) waiting.push(arg, out);
      else if (op === CAPTURE || op === NOP) waiting.push(out);
      else if (op === EMPTY_WIDTH) {
        if (around === undefined) this.#push(pc, start);
        else if ((arg & ~around) === 0) waiting.push(out);
      } else if (op === MATCH) {
        this.match = { start, end: at };
        this.cut = true;
        waiting.length = 0;
        return;
      }
    }
  }

  #push(pc: number, start: number): void {
    this.pcs[this.size] = pc;
    this.starts[this.size] = start;
    this.size += 1;
  }

  earliestStart(end: number): number {
    let earliest = end;
    for (let index = 0; index < this.size; index += 1) earliest = Math.min(earliest, this.starts[index]!);
    return earliest;
  }
}

const NEWLINE = 0x0a;
const FLAGS = { lineBegins: 1, lineEnds: 2, textBegins: 4, textEnds: 8, wordBorder: 16, noWordBorder: 32 };

function aroundOf({ bytes, leftFrom, end, complete }: Text, at: number): Around {
  if (at === end && !complete) return undefined;
  const left = bytes[at - 1]!;
  // The end of the text is the end of a line.
  const right = at === end ? NEWLINE : bytes[at]!;
  let flags = WORD[left] === WORD[right] ? FLAGS.noWordBorder : FLAGS.wordBorder;
  if (at === leftFrom) flags |= FLAGS.textBegins;
  if (left === NEWLINE) flags |= FLAGS.lineBegins;
  if (right === NEWLINE) flags |= FLAGS.lineEnds;
  if (at === end) flags |= FLAGS.textEnds;
  return flags;
}

const NO_CHARACTER = { rune: 0xfffd, length: 1 };
const ASCII = Array.from({ length: 128 }, (_, rune) => ({ rune, length: 1 }));

/** Decodes UTF-8 as re2js does: a byte outside a valid character counts as one character. */
function characterAt(bytes: Buffer, at: number, end: number): { rune: number; length: number } {
  const first = bytes[at]!;
  if (first < 0x80) return ASCII[first]!;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > end) return NO_CHARACTER;
  const text = bytes.toString('utf8', at, at + length);
  const rune = text.codePointAt(0)!;
  return text.length === (rune > 0xffff ? 2 : 1) && rune !== 0xfffd ? { rune, length } : NO_CHARACTER;
}
