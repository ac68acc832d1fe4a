import type { SeccompProfile, SeccompRule } from './seccomp.ts';
import { type CallArchitecture, syscallNumbers } from './syscall-numbers.ts';

// Compiles a seccomp profile to classic BPF over struct seccomp_data, for sandboxes such as bubblewrap (--seccomp).
// Calls by another convention (32 bits, x32) count as calls that the profile does not name. A binary search over the
// numbers takes some ten instructions.

const LOAD_WORD = 0x20;
const JUMP = 0x05;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const AND = 0x54;
const RETURN = 0x06;

const ALLOW = 0x7fff0000;
const FAIL = 0x00050000;
const EPERM = 1;

const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const ARGUMENTS_AT = 16;
const ARCHITECTURES: Record<CallArchitecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

const INSTRUCTION_BYTES = 8;
const LONGEST_STEP = 255;

interface Instruction {
  code: number;
  /** Number of instructions to skip if the comparison is true. */
  ifTrue?: number;
  ifFalse?: number;
  operand: number;
}

/** The answer for all calls from the number `from` up to the next decision. */
interface Decision {
  from: number;
  answer: Instruction[];
}

/** Returns the filter as an array of struct sock_filter, in the byte order that both architectures have. */
export function compileSeccomp(profile: SeccompProfile, architecture: CallArchitecture): Uint8Array {
  const search = halve(toDecisions(profile, architecture));
  return toBytes([
    load(ARCHITECTURE_AT),
    { code: JUMP_IF_EQUAL, ifTrue: 1, operand: ARCHITECTURES[architecture] },
    fail(EPERM),
    load(NUMBER_AT),
    ...search,
  ]);
}

function toDecisions(profile: SeccompProfile, architecture: CallArchitecture): Decision[] {
  const numberOf = syscallNumbers(architecture);
  const rules = new Map<number, SeccompRule[]>();
  for (const rule of profile.syscalls) {
    for (const name of rule.names) {
      const number = numberOf(name);
      if (number !== undefined) rules.set(number, [...(rules.get(number) ?? []), rule]);
    }
  }
  const denied = [fail(EPERM)];
  const decisions: Decision[] = [{ from: 0, answer: denied }];
  for (const number of [...rules.keys()].sort((a, b) => a - b)) {
    decisions.push({ from: number, answer: toAnswer(rules.get(number) ?? []) }, { from: number + 1, answer: denied });
  }
  return withoutRepeats(decisions);
}

function withoutRepeats(decisions: Decision[]): Decision[] {
  const last = decisions.filter(({ from }, index) => decisions[index + 1]?.from !== from);
  return last.filter(({ answer }, index) => JSON.stringify(answer) !== JSON.stringify(last[index - 1]?.answer));
}

/** Returns instructions by which the first rule whose conditions hold decides. */
function toAnswer(rules: SeccompRule[]): Instruction[] {
  return [...rules.flatMap((rule) => conditional(rule)), fail(EPERM)];
}

function conditional(rule: SeccompRule): Instruction[] {
  const steps = [rule.action === 'SCMP_ACT_ALLOW' ? give(ALLOW) : fail(rule.errnoRet ?? EPERM)];
  for (const condition of [...(rule.args ?? [])].reverse()) steps.unshift(...check(condition, steps.length));
  return steps;
}

/** Returns instructions that skip the next `rest` instructions if the condition does not hold. */
function check(condition: NonNullable<SeccompRule['args']>[number], rest: number): Instruction[] {
  const isMasked = condition.op === 'SCMP_CMP_MASKED_EQ';
  const wanted = isMasked ? (condition.valueTwo ?? 0) : condition.value;
  const at = ARGUMENTS_AT + 8 * condition.index;
  const low: Instruction[] = [
    load(at),
    ...(isMasked ? [{ code: AND, operand: condition.value }] : []),
    { code: JUMP_IF_EQUAL, ifFalse: rest, operand: wanted },
  ];
  // Masks have 32 bits here, so the upper half of the argument is not compared.
  if (isMasked) return low;
  return [load(at + 4), { code: JUMP_IF_EQUAL, ifFalse: low.length + rest, operand: 0 }, ...low];
}

/**
 * Returns instructions for a binary search. A conditional jump reaches 255 instructions, so longer distances need a
 * jump instruction.
 */
function halve(decisions: Decision[]): Instruction[] {
  const [first] = decisions;
  if (decisions.length <= 1) return first?.answer ?? [fail(EPERM)];
  const middle = Math.floor(decisions.length / 2);
  const lower = halve(decisions.slice(0, middle));
  const upper = halve(decisions.slice(middle));
  const operand = decisions[middle]?.from ?? 0;
  return lower.length <= LONGEST_STEP
    ? [{ code: JUMP_IF_AT_LEAST, ifTrue: lower.length, operand }, ...lower, ...upper]
    : [{ code: JUMP_IF_AT_LEAST, ifFalse: 1, operand }, { code: JUMP, operand: lower.length }, ...lower, ...upper];
}

function load(offset: number): Instruction {
  return { code: LOAD_WORD, operand: offset };
}

function give(answer: number): Instruction {
  return { code: RETURN, operand: answer };
}

function fail(errno: number): Instruction {
  return give(FAIL + errno);
}

function toBytes(program: Instruction[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(program.length * INSTRUCTION_BYTES));
  program.forEach(({ code, ifTrue = 0, ifFalse = 0, operand }, index) => {
    const at = index * INSTRUCTION_BYTES;
    view.setUint16(at, code, true);
    view.setUint8(at + 2, ifTrue);
    view.setUint8(at + 3, ifFalse);
    view.setUint32(at + 4, operand, true);
  });
  return new Uint8Array(view.buffer);
}
