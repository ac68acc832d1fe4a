// The keeper's own parser and its input, in C, under AddressSanitizer and UBSan where the compiler has them.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const library = join(import.meta.dirname, '..');
const plain = ['-std=gnu11', '-g', '-O1', '-Wall', '-Wextra', '-Werror'];
const sanitizers = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all'];
const MILLISECONDS = 1500;

async function compile(folder: string, sources: readonly string[]): Promise<string> {
  const program = join(folder, 'fuzz');
  const paths = sources.map((path) => join(library, path));
  const build = (flags: string[]) => run('cc', [...plain, ...flags, '-o', program, ...paths]);
  await build(sanitizers).catch(() => build([])); // a musl system has no sanitizer library
  return program;
}

test.each([
  ['the parser takes any bytes in any pieces, and finds the frame after the damage', 'parser', 'wire'],
  ['an open stdin takes any frames: each byte once, in its place, and no more than a window of them', 'input', 'input'],
])('%s', { timeout: 60_000 }, async (_, fuzzer, source) => {
  const folder = await mkdtemp(join(tmpdir(), 'sf-fuzz-'));
  try {
    const program = await compile(folder, [`fuzz/fuzz-${fuzzer}.c`, `src/${source}.c`]);
    const seed = String(Math.floor(Math.random() * 2 ** 31)); // in the failure's message, to run again
    const { stdout } = await run(program, [seed, String(MILLISECONDS)]);
    expect(stdout).toMatch(/^[1-9]\d* rounds, [1-9]\d* (frames|bytes)\n$/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
