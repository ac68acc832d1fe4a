import { setTimeout as delay } from 'node:timers/promises';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type EngineProxy, startEngineProxy } from '../support/engine-proxy.ts';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let proxy: EngineProxy;
let stack: TestFleet;
beforeAll(async () => {
  proxy = await startEngineProxy();
  stack = await startFleet({ slots: 40, env: { SHELLFLEET_DOCKER_SOCKET: proxy.socketPath } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await proxy?.[Symbol.asyncDispose]();
});

describe('a slow or silent engine', () => {
  // S0-53
  test('does not use the first command’s time limit while it pulls an image', async () => {
    const [limitMs, pullMs] = [2_000, 3_000];
    const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
    const repo = `slowly-pulled-${process.pid}`;
    const image = `${repo}:latest`;
    await docker.getImage(inject('sessionImage')).tag({ repo, tag: 'latest' });
    try {
      proxy.missingImage = image;
      proxy.pull = async () => {
        await delay(pullMs);
        proxy.missingImage = undefined;
      };
      const session = await stack.fleet.session('slow-pull', { image });
      const result = await session.run('sleep 0.1; echo in time', { timeoutMs: limitMs });
      expect(result).toEqual(expectedResult('slow-pull', { stdout: 'in time\n' }));
      expect(result.timings.startMs).toBeGreaterThanOrEqual(pullMs);
      expect(result.timings.runMs).toBeLessThan(limitMs);
      await session.close();
    } finally {
      proxy.pull = proxy.missingImage = undefined;
      await docker.getImage(image).remove();
    }
  });

  test('does not delay other sessions while images come from a silent registry', async () => {
    proxy.silence = (request) => request.startsWith('POST') && request.includes('/images/create');
    const waiting = Array.from({ length: 16 }, async (_, index) => {
      const session = await stack.fleet.session(`silent-${index}`, { image: `10.255.255.1/a:${index}` });
      return { session, command: await session.submit('true') };
    });
    const silent = await Promise.all(waiting);
    await until(
      () => Promise.all(silent.map(async ({ session }) => (await session.info()).state)),
      (states) => states.every((state) => state === 'starting'),
    );
    expect(await stack.fleet.run('echo open')).toMatchObject({ outcome: 'success', stdout: 'open\n' });
    for (const { session } of silent) await session.close();
    for (const { command } of silent) expect((await command.result()).outcome).toBe('cancellation');
  });

  test('is reported by its host, which takes no new session until the engine answers', async () => {
    const victim = await stack.fleet.session('engine-victim');
    await victim.run('true');
    // The engine drops its connections instead of being silent, so the calls fail at once.
    await proxy.cut();
    const [ill] = await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.problems !== undefined,
    );
    expect(ill).toMatchObject({
      state: 'up',
      problems: [expect.stringContaining('The Docker engine has not answered')],
    });
    const session = await stack.fleet.session('engine-late');
    const command = await session.submit('echo late');
    await until(
      async () => (await session.info()).noHostReason,
      (reason) => reason?.includes('The Docker engine has not answered') === true,
    );
    await proxy.mend();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'late\n' });
    expect(await victim.run('echo still')).toMatchObject({ stdout: 'still\n', shell: { state: 'kept' } });
    await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.state === 'up' && host.problems === undefined,
    );
  }, 60_000);
});
