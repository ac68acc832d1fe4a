import { isShellfleetError, type Result } from '@shellfleet/client';
import { sessionKeys } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setClientStage } from '../support/client-stage.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until, untilFound } from '../support/until.ts';

let own: OwnRedis;
beforeAll(async () => {
  own = await startOwnRedis();
});
afterAll(() => own[Symbol.asyncDispose]());

const codeOf = (error: unknown) => (isShellfleetError(error) ? error.code : error);

describe('the client', () => {
  test('returns the output streams and exit code of a command that a host ran', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s1');
    const result = await session.run('printf out; printf err >&2; exit 7');
    expect(result).toMatchObject({
      sessionId: 's1',
      outcome: 'failure',
      exitCode: 7,
      stdout: 'out',
      stderr: 'err',
      deduplicated: false,
      hostId: 'host-1',
    } satisfies Partial<Result>);
    expect(result.commandId).toMatch(/^s1\.[0-9A-HJKMNP-TV-Z]{26}$/);
  });

  test('tells whether a command waits, runs or has ended, with its Result', async () => {
    await using stage = await setClientStage(own);
    const session = await (await stage.connect()).session('s');
    const { id } = await session.submit('read line; echo got $line', { stdin: { open: true } });
    const command = await (await stage.connect()).command(id);
    expect(await command.info()).toEqual({ id, sessionId: 's', state: 'queued' });
    await stage.startHost();
    await expect.poll(() => command.info()).toEqual({ id, sessionId: 's', state: 'running' });
    await command.write('it\n');
    await expect.poll(() => command.info()).toMatchObject({ state: 'ended', result: { stdout: 'got it\n' } });
  });

  // Invariant 2
  test("runs 50 submits of two producers one at a time, each producer's in order", async () => {
    await using stage = await setClientStage(own);
    const host = await stage.startHost();
    const producers = [await stage.connect(), await stage.connect()];
    const sessions = await Promise.all(producers.map((fleet) => fleet.session('ordered')));
    const commands = sessions.flatMap((session, producer) =>
      Array.from({ length: 25 }, (_, index) => session.submit(`echo ${producer}-${index}`)),
    );
    const results = await Promise.all(commands.map(async (command) => (await command).result()));
    expect(results.map(({ stdout }) => stdout)).toEqual(
      [0, 1].flatMap((producer) => Array.from({ length: 25 }, (_, index) => `${producer}-${index}\n`)),
    );
    for (const producer of [0, 1]) {
      const scripts = host.began.map(({ script }) => script).filter((script) => script.startsWith(`echo ${producer}-`));
      expect(scripts).toEqual(Array.from({ length: 25 }, (_, index) => `echo ${producer}-${index}`));
    }
  });

  test('runs 50 submits with one idempotency key once, with one Result', async () => {
    await using stage = await setClientStage(own);
    const host = await stage.startHost();
    const sessions = [await (await stage.connect()).session('s'), await (await stage.connect()).session('s')];
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) => sessions[index % 2]?.run('echo once', { idempotencyKey: 'k' })),
    );
    expect(host.began).toEqual([{ session: 's', script: 'echo once' }]);
    expect(new Set(results.map((result) => result?.commandId)).size).toBe(1);
    expect(results.filter((result) => result?.deduplicated === false)).toHaveLength(1);
    expect(results.every((result) => result?.stdout === 'once\n')).toBe(true);
  });

  test('finds the command of an idempotency key after the first producer has gone', async () => {
    await using stage = await setClientStage(own);
    const first = await stage.connect();
    const { id } = await (await first.session('s')).submit('echo once', { idempotencyKey: 'k' });
    await first.close();
    const session = await (await stage.connect()).session('s');
    const again = session.run('echo once', { idempotencyKey: 'k' });
    const host = await stage.startHost();
    expect(await again).toMatchObject({ commandId: id, stdout: 'once\n', deduplicated: true });
    expect(host.began).toHaveLength(1);
  });

  test('runs one-shot commands with one idempotency key once, and closes their session', async () => {
    await using stage = await setClientStage(own);
    const host = await stage.startHost();
    const fleets = [await stage.connect(), await stage.connect()];
    const options = { idempotencyKey: 'k' };
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) => fleets[index % 2]?.run('sleep 0.1; echo once', options)),
    );
    results.push(await fleets[0]?.run('sleep 0.1; echo once', options));
    expect(host.began).toHaveLength(1);
    expect(new Set(results.map((result) => `${result?.commandId} ${result?.stdout}`)).size).toBe(1);
    await expect(fleets[1]?.run('echo other', options)).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    const [commandId = ''] = results.map((result) => result?.commandId);
    const session = await fleets[0]?.attach(commandId.slice(0, commandId.lastIndexOf('.')));
    await untilFound('no slot is taken', async () => (await session?.info())?.hostId === null);
  });

  test("renews the driver's heartbeat of one-shot commands, tasks and driven sessions until their close", async () => {
    await using stage = await setClientStage(own);
    const fleet = await stage.connect();
    const waits = [fleet.run('true'), fleet.batch([{ id: 'a', script: 'true' }]).run()];
    for (const wait of waits) wait.catch(() => {});
    const driven = await fleet.session('driven', {}, { driven: true });
    await fleet.session('plain');
    await fleet.session('plain', {}, { driven: true });
    const drivers = async () => (await stage.keys()).filter((key) => key.endsWith('}:driver'));
    const leftMs = async () => Promise.all((await drivers()).map((key) => stage.redis.pttl(key)));
    const names = (await until(drivers, (some) => some.length === 3)).map((key) => /:([a-z]+)[^:]*}/.exec(key)?.[1]);
    expect(names.sort()).toEqual(['batch', 'driven', 'run']);
    await driven.close();
    await until(leftMs, (left) => left.every((ms) => ms < 5_000));
    const renewed = (left: number[]) => left.filter((ms) => ms > 5_000).length;
    // The heartbeat of the closed session expires.
    await until(leftMs, (left) => renewed(left) === 2);
    await fleet.close();
    await Promise.allSettled(waits);
  });

  test('names the first command when an idempotency key is used for another payload', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const first = await session.run('echo a', { idempotencyKey: 'k' });
    const error = await session.run('echo b', { idempotencyKey: 'k' }).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT', context: { commandId: first.commandId } });
  });

  test('finds a command by its id in another process', async () => {
    await using stage = await setClientStage(own);
    const command = await (await stage.connect()).session('s').then((session) => session.submit('echo found'));
    const again = await (await stage.connect()).command(command.id);
    const waiting = again.result();
    await stage.startHost();
    expect(await waiting).toEqual(await command.result());
    // A command that has ended is found, too.
    const later = await (await stage.connect()).command(command.id);
    expect((await later.result()).stdout).toBe('found\n');
  });

  test('cancels queued and running commands, and returns false for an ended one', async () => {
    await using stage = await setClientStage(own);
    const host = await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const running = await session.submit('echo begun; exec sleep 60');
    const queued = await session.submit('echo never');
    await untilFound('the first began', async () => host.began.length === 1);
    expect(await queued.cancel()).toBe(true);
    expect(await queued.result()).toMatchObject({ outcome: 'cancellation', reason: 'cancelled', stdout: '' });
    for await (const chunk of running.output()) if (chunk.text.includes('begun')) break;
    const cancels = await Promise.all(Array.from({ length: 100 }, () => running.cancel()));
    expect(cancels.some((cancelled) => cancelled)).toBe(true);
    expect(await running.result()).toMatchObject({ outcome: 'cancellation', stdout: 'begun\n' });
    expect(await running.cancel()).toBe(false);
    expect(await queued.cancel()).toBe(false);
    expect(host.began).toHaveLength(1);
    expect((await session.run('echo usable')).stdout).toBe('usable\n');
  });

  test('ends the wait at an abort, while the command goes on', async () => {
    await using stage = await setClientStage(own);
    const session = await (await stage.connect()).session('s');
    const stop = new AbortController();
    const command = await session.submit('echo on');
    const waiting = command.result({ signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await stage.startHost();
    expect((await command.result()).stdout).toBe('on\n');
  });

  test('attaches with an equal spec, and names the differing fields of another spec', async () => {
    await using stage = await setClientStage(own);
    const fleet = await stage.connect();
    await fleet.session('s', { env: { TOKEN: 'hush' }, priority: 3 });
    await fleet.session('s', { priority: 3, env: { TOKEN: 'hush' }, onHostLoss: 'fail' });
    await fleet.session('s');
    const error = await fleet.session('s', { env: { TOKEN: 'hush2' } }).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'SESSION_CONFLICT', context: { fields: ['env.TOKEN', 'priority'] } });
    expect(JSON.stringify(error)).not.toMatch(/hush/);
  });

  test('refuses submits to a closed session, whose id can open a next generation', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const fleet = await stage.connect();
    const session = await fleet.session('s');
    const running = await session.submit('sleep 60');
    const queued = await session.submit('echo never');
    await untilFound('it runs', async () => (await session.info()).runningCommandId === running.id);
    await session.close();
    expect([(await running.result()).outcome, (await queued.result()).outcome]).toEqual([
      'cancellation',
      'cancellation',
    ]);
    expect(codeOf(await session.run('echo').catch((caught: unknown) => caught))).toBe('SESSION_CLOSED');
    expect((await session.info()).state).toBe('closed');
    await session.close();
    const next = await fleet.session('s', { priority: 1 });
    expect((await next.run('echo next')).stdout).toBe('next\n');
    expect(codeOf(await session.run('echo').catch((caught: unknown) => caught))).toBe('SESSION_CLOSED');
  });

  test('runs a one-shot command in its own session, which it then closes', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const fleet = await stage.connect();
    const result = await fleet.run('echo one');
    expect(result.stdout).toBe('one\n');
    await untilFound(
      'it is closed',
      async () => (await (await fleet.attach(result.sessionId))?.info())?.state === 'closed',
    );
  });

  test('restarts a shell in order with the commands, and counts the shells', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const [before, , after] = await Promise.all([session.run('echo a'), session.restart(), session.run('echo b')]);
    expect([before.shell.epoch, after.shell.epoch]).toEqual([1, 2]);
  });

  test.each([true, false])('reads the same bytes that it has written (ordered: %s)', async (ordered) => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const large = new Uint8Array(3 * 524_288 + 17).map((_, index) => index * 31);
    const writes = [
      session.files.write('/workspace/large', large, { ordered }),
      session.files.write('/workspace/empty', '', { ordered }),
    ];
    // An ordered read runs after the writes, whether they are awaited or not.
    if (!ordered) await Promise.all(writes);
    const readBack = await session.files.read('/workspace/large', { ordered });
    await Promise.all(writes);
    expect(Buffer.from(readBack).equals(Buffer.from(large))).toBe(true);
    expect(await session.files.readText('/workspace/empty', { ordered })).toBe('');
    expect((await session.files.list('/workspace', { ordered })).map(({ name, size }) => ({ name, size }))).toEqual([
      { name: 'empty', size: 0 },
      { name: 'large', size: large.byteLength },
    ]);
    await session.files.remove('/workspace/large', { ordered });
    const error = await session.files.read('/workspace/large', { ordered }).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'FILE_NOT_FOUND', message: expect.stringContaining('/workspace/large') });
  });

  test('lists sessions with their state, and those that wait with their position', async () => {
    await using stage = await setClientStage(own);
    const fleet = await stage.connect();
    for (const id of ['a', 'b']) await (await fleet.session(id)).submit('true');
    const waiting = await Array.fromAsync(fleet.sessions({ state: 'queued' }));
    expect(
      waiting
        .map(({ id, position, queuedCommands }) => ({ id, position, queuedCommands }))
        .sort((x, y) => (x.id < y.id ? -1 : 1)),
    ).toEqual([
      { id: 'a', position: 1, queuedCommands: 1 },
      { id: 'b', position: 2, queuedCommands: 1 },
    ]);
    await stage.startHost();
    await untilFound('both ran', async () => (await Array.fromAsync(fleet.sessions({ state: 'ready' }))).length === 2);
    expect(await fleet.hosts()).toMatchObject([{ id: 'host-1', state: 'up', policies: ['docker'] }]);
  });

  test('stops a task of a batch at its first failure, and refuses duplicate ids', async () => {
    await using stage = await setClientStage(own);
    const host = await stage.startHost({ slots: 2 });
    const fleet = await stage.connect();
    const tasks = [
      { id: 'fails', script: ['echo 1', 'exit 3', 'echo never'] },
      ...Array.from({ length: 6 }, (_, index) => ({ id: `t${index}`, script: `echo ${index}` })),
      { id: 'wrong', script: '' },
      { id: 't0', script: 'echo twice' },
    ];
    const batch = fleet.batch(tasks, { concurrency: 4 });
    const results = new Map((await Array.fromAsync(batch)).map((result) => [`${result.id} ${result.outcome}`, result]));
    expect([...results.keys()].sort()).toEqual([
      'fails failure',
      't0 error',
      't0 success',
      't1 success',
      't2 success',
      't3 success',
      't4 success',
      't5 success',
      'wrong error',
    ]);
    expect(results.get('fails failure')?.results.map(({ exitCode }) => exitCode)).toEqual([0, 3]);
    expect(results.get('wrong error')?.error?.code).toBe('COMMAND_INVALID');
    expect(batch.totals).toMatchObject({ tasks: 9, success: 6, failure: 1, error: 2 });
    expect(host.began.map(({ script }) => script)).not.toContain('echo never');
    await untilFound('its sessions are closed', async () => (await Array.fromAsync(fleet.sessions())).length === 0);
  });

  test('returns each result when its task ends, and cancels running tasks at an abort', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const fleet = await stage.connect();
    const stop = new AbortController();
    const more = Promise.withResolvers<void>();
    async function* tasks() {
      yield { id: 'quick', script: 'echo quick' };
      yield { id: 'long', script: 'exec sleep 60' };
      await more.promise;
      yield { id: 'never', script: 'echo never' };
    }
    const batch = fleet.batch(tasks(), { signal: stop.signal })[Symbol.asyncIterator]();
    expect((await batch.next()).value).toMatchObject({ id: 'quick', outcome: 'success' });
    await untilFound(
      'the long one runs',
      async () => (await Array.fromAsync(fleet.sessions({ state: 'busy' }))).length === 1,
    );
    stop.abort();
    more.resolve();
    expect((await batch.next()).value).toMatchObject({ id: 'long', outcome: 'cancellation' });
    expect((await batch.next()).done).toBe(true);
  });

  test('accepts 20,000 simultaneous submits in call order', async () => {
    await using stage = await setClientStage(own);
    const session = await (await stage.connect()).session('s');
    const commands = await Promise.all(Array.from({ length: 20_000 }, () => session.submit('true')));
    const { queue } = sessionKeys(stage.keyspace, 'default', 's');
    expect((await stage.redis.lrange(queue, 0, -1)).map((entry) => `s.${entry}`)).toEqual(commands.map(({ id }) => id));
  });

  // Invariant 10
  test('has at most five connections for 100 sessions with one reader each', async () => {
    await using stage = await setClientStage(own);
    // A host keeps its last eighth for other tenants.
    await stage.startHost({ slots: 120 });
    const fleet = await stage.connect();
    const sessions = await Promise.all(Array.from({ length: 100 }, (_, index) => fleet.session(`many-${index}`)));
    await Promise.all(sessions.map((session) => session.run('true', { onOutput: () => {} })));
    const clients = (await stage.redis.client('LIST')) as string;
    const ours = clients.split('\n').filter((line) => /name=shellfleet-(producer|feeds)/.test(line));
    expect(ours.length).toBeLessThanOrEqual(5);
  });
});
