// Tests the frame parser, the open stdin and the encrypted messages, in C, under AddressSanitizer and UBSan. Without
// libasan and libubsan (gcc) or compiler-rt (clang) the tests fail, because a fuzzer finds almost nothing without them.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

const run = promisify(execFile);
const library = join(import.meta.dirname, '..');
const plain = ['-std=gnu11', '-g', '-O1', '-Wall', '-Wextra', '-Werror'];
const sanitizers = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all'];
const MILLISECONDS = 1500;

async function compile(directory: string, sources: readonly string[]): Promise<string> {
  const program = join(directory, 'fuzz');
  const paths = sources.map((path) => join(library, path));
  await run('cc', [...plain, ...sanitizers, '-o', program, ...paths, '-lsodium']);
  return program;
}

describe('the C parts of the keeper, under sanitizers', () => {
  test.each([
    ['find the frame after damage in any bytes and pieces', 'parser', ['wire']],
    [
      'write each byte of any frames to an open stdin once, within its window',
      'input',
      ['input', 'free_path', 'events', 'memory', 'log'],
    ],
    ['pass on each byte of a connection over TCP once, and none of a wrong message', 'records', ['records', 'noise']],
  ])('%s', { timeout: 60_000 }, async (_, fuzzer, sources) => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-fuzz-'));
    try {
      const program = await compile(directory, [
        `fuzz/fuzz-${fuzzer}.c`,
        ...sources.map((source) => `src/${source}.c`),
      ]);
      const seed = String(Math.floor(Math.random() * 2 ** 31)); // in the failure's message, to run again
      const { stdout } = await run(program, [seed, String(MILLISECONDS)]);
      expect(stdout).toMatch(/^[1-9]\d* rounds, [1-9]\d* (frames|bytes)\n$/);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
