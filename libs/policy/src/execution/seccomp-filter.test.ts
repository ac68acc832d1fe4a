import { describe, expect, test } from 'vitest';
import { type SeccompProfile, sessionSeccompProfile } from './seccomp.ts';
import { compileSeccomp } from './seccomp-filter.ts';
import { type CallArchitecture, syscallNumbers } from './syscall-numbers.ts';

const ARCHITECTURES = ['x64', 'arm64'] as const;
const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7, i386: 0x40000003 };

describe.each(ARCHITECTURES)('the filter of %s', (architecture) => {
  const profile = sessionSeccompProfile();
  const program = compileSeccomp(profile, architecture);

  test('decides about every call as the profile does, whatever its arguments', () => {
    const wanted = wantedAnswers(profile, architecture);
    for (let number = 0; number < 600; number++) {
      for (const argument of [0n, 1n, 2n, 3n, 16n, 0x20008n, 0x10000000n, 0xffffffffn, 0x1_0000_0002n, 2n ** 64n - 1n])
        expect([number, argument, answer(program, AUDIT[architecture], number, argument)]).toEqual([
          number,
          argument,
          wanted(number, argument),
        ]);
    }
  });

  test('refuses every call of another calling convention', () => {
    const read = syscallNumbers(architecture)('read') ?? -1;
    expect(answer(program, AUDIT[architecture], read, 0n)).toBe('allow');
    expect(answer(program, AUDIT.i386, read, 0n)).toBe(1);
    expect(answer(program, AUDIT[architecture], read + 0x40000000, 0n)).toBe(1);
    expect(answer(program, AUDIT[architecture], 0xffffffff, 0n)).toBe(1);
  });

  test('executes few instructions for an ordinary call', () => {
    expect(steps(program, AUDIT[architecture], syscallNumbers(architecture)('read') ?? -1, 0n)).toBeLessThan(16);
    expect(program.length / 8).toBeLessThan(600);
  });
});

function wantedAnswers(profile: SeccompProfile, architecture: CallArchitecture) {
  const numberOf = syscallNumbers(architecture);
  return (number: number, argument: bigint): 'allow' | number => {
    for (const rule of profile.syscalls) {
      if (!rule.names.some((name) => numberOf(name) === number)) continue;
      const holds = (rule.args ?? []).every(({ op, value, valueTwo = 0 }) =>
        op === 'SCMP_CMP_EQ' ? argument === BigInt(value) : (argument & BigInt(value)) === BigInt(valueTwo),
      );
      if (holds) return rule.action === 'SCMP_ACT_ALLOW' ? 'allow' : (rule.errnoRet ?? 1);
    }
    return 1;
  };
}

function answer(program: Uint8Array, architecture: number, number: number, argument: bigint): 'allow' | number {
  const value = run(program, architecture, number, argument).answer;
  return value === 0x7fff0000 ? 'allow' : value - 0x00050000;
}

function steps(program: Uint8Array, architecture: number, number: number, argument: bigint): number {
  return run(program, architecture, number, argument).steps;
}

/** Runs the program as the kernel does, with the same value in every argument. */
function run(program: Uint8Array, architecture: number, number: number, argument: bigint) {
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, number, true);
  data.setUint32(4, architecture, true);
  for (let index = 0; index < 6; index++) data.setBigUint64(16 + 8 * index, argument, true);
  const code = new DataView(program.buffer);
  let value = 0;
  for (let at = 0, steps = 1; ; at++, steps++) {
    const [ifTrue, ifFalse, operand] = [
      code.getUint8(at * 8 + 2),
      code.getUint8(at * 8 + 3),
      code.getUint32(at * 8 + 4, true),
    ];
    const operations: Record<number, () => void> = {
      32: () => (value = data.getUint32(operand, true)),
      84: () => (value = (value & operand) >>> 0),
      5: () => (at += operand),
      21: () => (at += value === operand ? ifTrue : ifFalse),
      53: () => (at += value >= operand ? ifTrue : ifFalse),
    };
    const operation = code.getUint16(at * 8, true);
    if (operation === 0x06) return { answer: operand, steps };
    if (operations[operation] === undefined) throw new Error(`no instruction ${operation} is known`);
    operations[operation]();
  }
}
