import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildInto } from '../build.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-build-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Makes a compiler that fails with this message. */
async function compilerThatPrints(message: string): Promise<string> {
  const path = join(directory, 'compiler');
  await writeFile(path, `#!/bin/sh\necho "${message}" >&2\nexit 1\n`, { mode: 0o755 });
  return path;
}

describe('a build of the keeper', () => {
  test.each([
    'noise.c:3:10: fatal error: sodium.h: No such file or directory',
    "noise.c:3:10: fatal error: 'sodium.h' file not found",
    '/usr/bin/ld: cannot find -lsodium: No such file or directory',
  ])('names the package of the library after: %s', async (message) => {
    const building = buildInto(directory, ['no-such-compiler', await compilerThatPrints(message)]);
    await expect(building).rejects.toMatchObject({
      name: 'MissingBuildTool',
      message: expect.stringMatching(/apt-get install libsodium-dev$/),
    });
  });

  test('names the packages of a compiler if there is none', async () => {
    await expect(buildInto(directory, ['no-such-compiler'])).rejects.toMatchObject({
      name: 'MissingBuildTool',
      message: expect.stringMatching(/tried no-such-compiler.*apt-get install gcc libc6-dev$/),
    });
  });

  test('reports any other failure of the compiler as it is', async () => {
    const building = buildInto(directory, [await compilerThatPrints('main.c:1: error: expected ;')]);
    await expect(building).rejects.toMatchObject({ name: 'Error', stderr: 'main.c:1: error: expected ;\n' });
  });
});
