import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ workers: 2, slots: 4 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const stateOf = async (hostId: string) => (await stack.fleet.hosts()).find(({ id }) => id === hostId)?.state;
const hostOf = async (sessionId: string) => (await (await stack.fleet.session(sessionId)).info()).hostId;

describe('a draining host', () => {
  test('keeps living shells, takes no other session, and takes them again when undrained', async () => {
    const { fleet, workers } = stack;
    const kept = await fleet.session('drain-kept');
    await kept.run('kept=1');
    const drained = (await hostOf('drain-kept')) ?? '';
    await fleet.drainHost(drained);
    await until(
      () => stateOf(drained),
      (state) => state === 'draining',
    );
    const fresh = await Promise.all(
      Array.from({ length: 4 }, async (_, index) =>
        (await fleet.session(`drain-fresh-${index}`)).run('echo $HOSTNAME'),
      ),
    );
    expect(new Set(fresh.map(({ hostId }) => hostId))).toEqual(new Set(['h1', 'h2'].filter((id) => id !== drained)));
    expect(await kept.run('echo $kept')).toMatchObject({ stdout: '1\n', hostId: drained, shell: { state: 'kept' } });

    // The request to drain outlives the worker's process.
    const worker = workers.find(({ hostId }) => hostId === drained);
    await worker?.stop('SIGTERM');
    await worker?.start();
    expect(await stateOf(drained)).toBe('draining');
    expect(await kept.run('echo $kept')).toMatchObject({ stdout: '1\n', hostId: drained });

    // The other host is full, so only the drained host could take the session.
    const next = await (await fleet.session('drain-next')).submit('echo next');
    await fleet.drainHost(drained, { undo: true });
    expect(await next.result()).toMatchObject({ stdout: 'next\n', hostId: drained });
    await expect(fleet.drainHost('nobody')).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
  });

  test('gives up a session whose shell still starts, and another host takes it', async () => {
    const { fleet } = stack;
    for await (const { id } of fleet.sessions()) await (await fleet.attach(id))?.close();
    const spec = {
      startupCommands: ['until [ -e /tmp/never ] || [ -n "$go" ]; do sleep 0.1; [ $SECONDS -ge 4 ] && go=1; done'],
    };
    const session = await fleet.session('drain-starting', spec);
    const command = await session.submit('echo ran');
    const { hostId: first } = await until(
      () => session.info(),
      ({ state }) => state === 'starting',
    );
    await fleet.drainHost(first ?? '');
    await until(
      () => session.info(),
      ({ hostId }) => hostId !== null && hostId !== first,
    );
    expect((await command.result()).hostId).not.toBe(first);
    await fleet.drainHost(first ?? '', { undo: true });
  });

  test('is not listed after it ended without sessions, until it starts again', async () => {
    const { fleet, workers } = stack;
    for await (const { id } of fleet.sessions()) await (await fleet.attach(id))?.close();
    const [first, second] = workers;
    await second?.stop('SIGINT');
    expect((await fleet.hosts()).map(({ id }) => id)).toEqual(['h1']);
    await second?.start();
    expect((await fleet.hosts()).map(({ id, state }) => `${id} ${state}`)).toEqual(['h1 up', 'h2 up']);

    await second?.kill();
    await until(
      () => stateOf('h2'),
      (state) => state === 'unreachable',
    );
    await fleet.drainHost('h2');
    await fleet.removeHost('h2');
    expect((await fleet.hosts()).map(({ id }) => id)).toEqual(['h1']);
    await expect(fleet.removeHost('h1')).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringContaining('hosts drain h1'),
    });
    await expect(fleet.removeHost('nobody')).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
    await second?.start();
    expect((await fleet.hosts()).map(({ id, state }) => `${id} ${state}`)).toEqual(['h1 up', 'h2 up']);
    await first?.stop('SIGTERM');
    expect((await fleet.hosts()).map(({ id }) => id)).toEqual(['h2']);
  });
});

describe('a cordoned host', () => {
  test('keeps its sessions through a restart, and takes no other until uncordoned', async () => {
    const { fleet, workers } = stack;
    const [worker, other] = workers;
    await worker?.start();
    await other?.stop('SIGINT');
    const cordoned = async () => (await fleet.hosts()).find(({ id }) => id === 'h1');
    await until(cordoned, (host) => host?.state === 'up');
    const kept = await fleet.session('cordon-kept');
    await kept.run('kept=1');
    await fleet.cordonHost('h1');
    expect(await until(cordoned, (host) => host?.problems !== undefined)).toMatchObject({
      ...{ state: 'up', cordoned: true },
      problems: [expect.stringContaining('hosts uncordon h1')],
    });
    const waiting = await fleet.session('cordon-waits');
    const command = await waiting.submit('echo taken');
    expect((await waiting.info()).noHostReason).toContain('hosts uncordon h1');
    expect(await kept.run('echo $kept')).toMatchObject({ stdout: '1\n', hostId: 'h1' });
    await kept.restart();
    expect(await kept.run('echo fresh')).toMatchObject({ stdout: 'fresh\n', hostId: 'h1' });

    await worker?.kill();
    await until(cordoned, (host) => host?.state === 'unreachable');
    await expect(fleet.removeHost('h1')).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringContaining('still owns 1 session: cordon-kept (tenant default).'),
    });
    expect(await cordoned()).toMatchObject({ cordoned: true });
    await worker?.start();
    expect(await kept.run('echo again')).toMatchObject({ stdout: 'again\n', hostId: 'h1' });
    expect(await waiting.info()).toMatchObject({ state: 'queued', hostId: null });
    await fleet.uncordonHost('h1');
    expect(await command.result()).toMatchObject({ stdout: 'taken\n', hostId: 'h1' });
    expect(await cordoned()).not.toHaveProperty('cordoned');
    await expect(fleet.cordonHost('nobody')).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
  });
});
