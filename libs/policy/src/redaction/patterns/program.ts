import { RE2JS } from 're2js';

/** What re2js compiled a pattern to: instructions of Pike's machine. */
export interface Program {
  inst: readonly Instruction[];
  start: number;
}

interface Instruction {
  op: number;
  out: number;
  arg: number;
  matchRune(rune: number): boolean;
}

const FAIL = 5;

/** re2js's numbers. */
export const OP = {
  ALT: 1,
  ALT_MATCH: 2,
  CAPTURE: 3,
  EMPTY_WIDTH: 4,
  MATCH: 6,
  NOP: 7,
  RUNE: 8,
  RUNE1: 9,
  ANY: 10,
  ANY_NOT_NEWLINE: 11,
};

export interface Pattern {
  regex: RE2JS;
  program: Program;
  /** For each instruction and each of the first 128 characters: 1 where it reads it. */
  consumesAscii: Uint8Array;
  /** Whether it looks at what stands left or right of a place. */
  readsAround: boolean;
  matchesNewline: boolean;
  /** With which every match begins, if that is one byte. */
  firstByte: number | undefined;
  /** Characters; Infinity if there is no most. */
  longest: number;
}

const MOST_INSTRUCTIONS = 2_000;

/** Throws with why a pattern cannot be used; the text is for whoever wrote it. */
export function compilePattern(source: string): Pattern {
  const regex = RE2JS.compile(source);
  const program: Program = regex.re2().prog;
  if (program.inst.length > MOST_INSTRUCTIONS) throw new Error('is too large when its repetitions are written out');
  const shortest = shortestOf(program);
  if (shortest === 0) throw new Error('matches the empty text');
  if (shortest === Number.POSITIVE_INFINITY) throw new Error('matches nothing');
  return {
    regex,
    program,
    consumesAscii: Uint8Array.from({ length: 128 * program.inst.length }, (_, index) =>
      consumes(program.inst[index >> 7]!, index & 127) ? 1 : 0,
    ),
    readsAround: program.inst.some(({ op }) => op === OP.EMPTY_WIDTH),
    matchesNewline: program.inst.some((instruction) => consumes(instruction, 0x0a)),
    firstByte: regex.re2().prefixUTF8[0],
    longest: longestOf(program),
  };
}

/** Whether `instruction` reads a character, and may read this one. */
export function consumes(instruction: Instruction, rune: number): boolean {
  switch (instruction.op) {
    case OP.RUNE:
    case OP.RUNE1:
      return instruction.matchRune(rune);
    case OP.ANY:
      return true;
    case OP.ANY_NOT_NEWLINE:
      return rune !== 0x0a;
    default:
      return false;
  }
}

/** Breadth first: what reads no character costs nothing. */
function shortestOf({ inst, start }: Program): number {
  const seen = new Set<number>();
  let level = new Set([start]);
  for (let length = 0; level.size > 0; length += 1) {
    const next = new Set<number>();
    for (const pc of level) {
      if (seen.has(pc)) continue;
      seen.add(pc);
      const instruction = inst[pc]!;
      if (instruction.op === OP.MATCH) return length;
      for (const follower of followersOf(instruction)) (reads(instruction) ? next : level).add(follower);
    }
    level = next;
  }
  return Number.POSITIVE_INFINITY;
}

/** Depth first, without recursion: patterns are others' texts. A way that comes back to itself has no end. */
function longestOf({ inst, start }: Program): number {
  const longest = new Map<number, number>();
  const under = new Set<number>();
  const stack = [start];
  while (stack.length > 0) {
    const pc = stack.at(-1)!;
    const followers = followersOf(inst[pc]!);
    const waiting = followers.filter((follower) => !longest.has(follower) && !under.has(follower));
    if (!longest.has(pc) && waiting.length > 0) {
      under.add(pc);
      stack.push(...waiting);
      continue;
    }
    stack.pop();
    under.delete(pc);
    const behind = followers.map((follower) => longest.get(follower) ?? Number.POSITIVE_INFINITY);
    if (!longest.has(pc)) longest.set(pc, (reads(inst[pc]!) ? 1 : 0) + Math.max(0, ...behind));
  }
  return longest.get(start)!;
}

function reads({ op }: Instruction): boolean {
  return op >= OP.RUNE && op <= OP.ANY_NOT_NEWLINE;
}

function followersOf({ op, out, arg }: Instruction): number[] {
  if (op === OP.MATCH || op === FAIL) return [];
  return op === OP.ALT || op === OP.ALT_MATCH ? [out, arg] : [out];
}
