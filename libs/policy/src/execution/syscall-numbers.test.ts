import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { sessionSeccompProfile } from './seccomp.ts';
import { syscallNumbers } from './syscall-numbers.ts';

// Kernel headers come with the keeper's compiler. Every machine has arm64's (generic) table; only x64 machines have
// x64's.

const HEADERS = {
  arm64: '/usr/include/asm-generic/unistd.h',
  x64: '/usr/include/x86_64-linux-gnu/asm/unistd_64.h',
} as const;
/** First number from which new calls have the same number on all architectures. */
const FIRST_COMMON = 424;

const names = [...new Set(sessionSeccompProfile().syscalls.flatMap((rule) => rule.names))];

const onThisMachine = process.arch === 'x64' ? (['x64', 'arm64'] as const) : (['arm64'] as const);

describe.each(onThisMachine)('the numbers of system calls of %s', (architecture) => {
  const numberOf = syscallNumbers(architecture);

  test('equal those of the kernel, and are undefined for calls that the architecture lacks', () => {
    const known = readHeader(HEADERS[architecture]);
    const newest = Math.max(...known.values());
    // Calls that are newer than the header are left out.
    const older = names.filter((name) => (numberOf(name) ?? 0) <= newest);
    expect(Object.fromEntries(older.map((name) => [name, numberOf(name)]))).toEqual(
      Object.fromEntries(older.map((name) => [name, known.get(name)])),
    );
    expect(older.length).toBeGreaterThan(200);
  });

  test('are the same on all architectures for new calls', () => {
    const other = syscallNumbers(architecture === 'x64' ? 'arm64' : 'x64');
    const added = names.filter((name) => (numberOf(name) ?? 0) >= FIRST_COMMON);
    expect(added.map((name) => [name, numberOf(name)])).toEqual(added.map((name) => [name, other(name)]));
    expect(added.length).toBeGreaterThan(15);
  });
});

/**
 * Returns the numbers by name. `__NR3264_…` has another name on 32 bits. `__NR_syscalls` is the number of calls, and is
 * ignored.
 */
function readHeader(path: string): Map<string, number> {
  const lines = readFileSync(path, 'utf8').matchAll(/^#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$/gm);
  const found = new Map([...lines].map(([, name = '', number]) => [name, Number(number)]));
  found.delete('syscalls');
  const fstatat = found.get('fstatat');
  if (fstatat !== undefined) found.set('newfstatat', fstatat);
  return found;
}
