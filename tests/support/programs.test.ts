import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bundleInto } from './programs.ts';

describe('a bundled program', () => {
  test('runs the scripts that existed when it was bundled', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'shellfleet-programs-test-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const source = join(directory, 'source.mjs');
    await writeFile(
      source,
      `import { readFileSync } from 'node:fs';
    process.stdout.write(readFileSync(new URL('./script.lua', import.meta.url), 'utf8'));`,
    );
    await writeFile(join(directory, 'script.lua'), 'return 1');
    const { program } = await bundleInto(join(directory, 'programs'), { program: source });
    await writeFile(join(directory, 'script.lua'), 'return 2');
    expect((await promisify(execFile)(process.execPath, [program])).stdout).toBe('return 1');
  });
});
