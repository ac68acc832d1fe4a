import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { startUnreachableSocketEngine } from '../support/unreachable-socket-engine.ts';

const enginePath = inject('dockerHost').replace('unix://', '');

async function transportOf(stack: TestFleet): Promise<{ stdout: string; transport: unknown }> {
  const { stdout } = await (await stack.fleet.session('s')).run('echo on');
  await using inspector = inspectFleet(stack);
  const { Config } = await (await inspector.container('s')).inspect();
  return { stdout, transport: Config.Labels['shellfleet.transport'] };
}

async function remembered({ stateDirectory }: TestFleet): Promise<unknown> {
  const [host = ''] = await readdir(join(stateDirectory, 'hosts'));
  return JSON.parse(await readFile(join(stateDirectory, 'hosts', host, 's', '.transport.json'), 'utf8'));
}

describe('the transport of sessions', () => {
  test('is the worker’s socket where containers can reach it, and probes leave no container', async () => {
    await using stack = await startFleet({ transport: 'auto' });
    await using inspector = inspectFleet(stack);
    await expect.poll(() => inspector.containers()).toEqual([]);
    expect(await transportOf(stack)).toEqual({ stdout: 'on\n', transport: 'socket' });
    expect(await remembered(stack)).toEqual({ engine: expect.any(String), transport: 'socket' });
  });

  test('is attach where the socket fails, as with Docker Desktop; a restart probes no more', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-eng-'));
    try {
      await using engine = await startUnreachableSocketEngine(enginePath, directory);
      await using stack = await startFleet({ transport: 'auto', env: { SHELLFLEET_DOCKER_SOCKET: engine.path } });
      expect(await transportOf(stack)).toEqual({ stdout: 'on\n', transport: 'attach' });
      expect(await remembered(stack)).toEqual({ engine: engine.path, transport: 'attach' });
      await stack.workers[0]?.stop('SIGINT');
      await stack.workers[0]?.start();
      expect(await transportOf(stack)).toEqual({ stdout: 'on\n', transport: 'attach' });
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
