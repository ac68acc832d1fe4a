import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const shellfleet = join(checkoutRoot, 'node_modules/.bin/shellfleet');
const program = join(checkoutRoot, 'examples/npm-packages/src/main.ts');
const oneRunMs = 120_000;

type Ended = { exitCode: number; stdout: string; stderr: string };

async function runExample(args: string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  const node = ['--conditions=@shellfleet/source', '--no-warnings', program, ...args];
  return run(process.execPath, node, { env }).then(
    ({ stdout, stderr }) => ({ exitCode: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ exitCode: code, stdout, stderr }),
  );
}

const linesOf = (text: string, mark: string): string[] => text.split('\n').filter((line) => line.startsWith(mark));

describe('the npm packages example', () => {
  let directory: string;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'example-test-'));
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SHELLFLEET_'));
    env = { ...Object.fromEntries(inherited), SHELLFLEET_STATE_DIR: join(directory, 'fleet') };
  });

  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('exercises twenty packages on its own fleet of four slots', { timeout: oneRunMs }, async () => {
    const { exitCode, stdout, stderr } = await runExample(['--own'], env);
    expect(linesOf(stdout, '✗'), stderr).toEqual([]);
    expect(stdout).toContain('Exercising them on 4 slots');
    expect(linesOf(stdout, '✓')).toHaveLength(20);
    expect(stdout).toContain('20 packages: 20 passed, 0 failed');
    expect(exitCode).toBe(0);
  });

  it('fails for a broken package, and passes again on the same fleet', { timeout: 3 * oneRunMs }, async () => {
    await run(shellfleet, ['up', '--detach', '--slots', '4'], { env });
    try {
      const broken = await runExample(['--break', 'semver'], env);
      expect(linesOf(broken.stdout, '✗'), broken.stderr).toEqual([
        expect.stringMatching(/^✗ semver .*failure: TypeError/),
      ]);
      expect(linesOf(broken.stdout, '✓')).toHaveLength(19);
      expect(broken.exitCode).toBe(1);

      const again = await runExample([], env);
      expect(linesOf(again.stdout, '✓'), again.stderr).toHaveLength(20);
      expect(again.exitCode).toBe(0);
    } finally {
      await run(shellfleet, ['down'], { env });
    }
  });

  it('reports that it needs the registry when that cannot be reached', { timeout: oneRunMs }, async () => {
    const nobody = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_cache: join(directory, 'empty-cache') };
    const { exitCode, stdout, stderr } = await runExample(['--own'], { ...env, ...nobody });
    expect(stderr).toContain('this example needs the npm registry');
    expect(stderr).toContain('ECONNREFUSED');
    expect(linesOf(stdout, '✓')).toEqual([]);
    expect(exitCode).toBe(1);
  });

  it('refuses the name of a package that it does not have', async () => {
    const { exitCode, stderr } = await runExample(['--break', 'left-pad'], env);
    expect(stderr).toContain('left-pad is none of bytes, camelcase');
    expect(exitCode).toBe(2);
  });
});
