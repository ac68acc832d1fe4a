import { RE2JS } from 're2js';

/** A pattern as re2js compiled it: instructions of Pike's virtual machine. */
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

/** Numbers of re2js's instructions. */
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
  /** For each instruction, 128 items: 1 for each ASCII character that the instruction consumes. */
  consumesAscii: Uint8Array;
  /** Whether the pattern has assertions (`^ $ \b` …). They depend on the characters next to a match. */
  readsAround: boolean;
  matchesNewline: boolean;
  /** The byte with which every match begins. Undefined if matches may begin with several bytes. */
  firstByte: number | undefined;
  /** Greatest length of a match, in characters. Infinity if the length is not bounded. */
  longest: number;
}

const MOST_INSTRUCTIONS = 2_000;

/** Compiles a pattern. Throws an error with the reason, for the author of the pattern. */
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

/** Tells whether `instruction` consumes a character and accepts the character `rune`. */
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

/** Returns the least length of a match, breadth first. Instructions that consume no character have length 0. */
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

/** Returns the greatest length of a match, depth first; Infinity for a cycle. Users write patterns, so no recursion. */
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
