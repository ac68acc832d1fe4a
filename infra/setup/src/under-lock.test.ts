import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { underLock } from './under-lock.ts';

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'lock-'));
  path = join(directory, 'lock');
});
afterEach(() => rm(directory, { recursive: true }));

describe('a lock between processes', () => {
  test('runs work one after the other, also after work that failed', async () => {
    const steps: string[] = [];
    const work = (name: string) => async () => {
      steps.push(`${name} begins`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      steps.push(`${name} ends`);
      if (name === 'a') throw new Error('a failed');
      return name;
    };
    const all = await Promise.allSettled(['a', 'b'].map((name) => underLock(path, undefined, work(name))));
    expect(all.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect([steps[0]?.[0], steps[2]?.[0]]).toEqual([steps[1]?.[0], steps[3]?.[0]]);
  });

  test('stops waiting when it is interrupted', async () => {
    await underLock(path, undefined, async () => {
      const interrupted = new AbortController();
      const waiting = underLock(path, interrupted.signal, async () => 'must not run');
      interrupted.abort(new Error('interrupted'));
      await expect(waiting).rejects.toThrow('interrupted');
    });
  });

  test('is released when its process is killed', async () => {
    const module = fileURLToPath(new URL('under-lock.ts', import.meta.url));
    const program = `import { underLock } from ${JSON.stringify(module)};
    await underLock(${JSON.stringify(path)}, undefined, async () => { console.log('held'); await new Promise((resolve) => setTimeout(resolve, 600_000)); });`;
    const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    expect(await underLock(path, undefined, async () => 'done')).toBe('done');
  });
});
