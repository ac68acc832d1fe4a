import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readGeneration, submit } from '@shellfleet/mailbox';
import { fleetKeys, payloadKey, sessionJobId, sessionKeys, sessionsQueue, tenantKeys } from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import { describe, expect, test } from 'vitest';
import { classOf } from '../support/class-of.ts';
import { setClientStage } from '../support/client-stage.ts';
import { keyspaceOf } from '../support/keyspace.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { untilFound } from '../support/until.ts';

const firstSubmit = fileURLToPath(new URL('../support/first-submit.ts', import.meta.url));

describe('the client during faults', () => {
  // SUBMIT-2
  test.each(['index', 'submit', 'job'])(
    'leaves no command waiting forever if it dies before the %s of the first',
    async (step) => {
      await using stage = await setClientStage();
      const { namespace, sealKey } = stage;
      const child = fork(firstSubmit, [stage.own.url, namespace, sealKey, step], {
        execArgv: ['--conditions=@shellfleet/source', '--no-warnings'],
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      await once(child, 'exit');
      expect(child.signalCode).toBe('SIGKILL');

      const fleet = fleetKeys(keyspaceOf(namespace));
      const keys = sessionKeys(keyspaceOf(namespace), 'default', 's');
      const jobKey = `${fleet.sessionQueues}:${sessionsQueue(classOf('docker', sealKey), 'default')}:${sessionJobId('default', 's')}`;
      const seen = {
        indexed: (await stage.redis.zscore(tenantKeys(keys.namespace, keys.tenant).index, 's')) !== null,
        waiting: await stage.redis.llen(keys.queue),
        job: (await stage.redis.exists(jobKey)) === 1,
      };
      // The waiting command is in the index. Upkeep finds it there, and adds the job.
      expect(seen).toEqual(
        {
          index: { indexed: false, waiting: 0, job: false },
          submit: { indexed: true, waiting: 0, job: false },
          job: { indexed: true, waiting: 1, job: false },
        }[step],
      );
    },
  );

  // Invariant 4
  test('runs a command once if its submit is sent again', async () => {
    await using stage = await setClientStage();
    const session = await (await stage.connect()).session('s');
    const command = await session.submit('echo once');
    const keys = sessionKeys(stage.keyspace, 'default', 's');
    const entryId = command.id.slice('s.'.length);
    const payload = await stage.redis.get(payloadKey(keys, entryId));
    const { redis } = await connectRedis(stage.own.url, 'producer', 'again');
    const again = await submit(redis, keys, {
      entryId,
      generation: (await readGeneration(stage.redis, keys))?.generation ?? '',
      kind: 'command',
      payload: payload ?? '',
      payloadHash: '',
      inbox: 'nobody',
      retry: 'never',
    });
    redis.disconnect();
    expect(again.type).toBe('accepted-before');
    const host = await stage.startHost();
    expect((await command.result()).stdout).toBe('once\n');
    await session.run('true');
    expect(host.began.map(({ script }) => script)).toEqual(['echo once', 'true']);
  });

  test('fails a submit within its deadline if Redis is out of reach, with instructions', async () => {
    await using stage = await setClientStage();
    const session = await (await stage.connect()).session('s');
    stage.own.freeze();
    const startedAt = Date.now();
    const error = await session.submit('true').catch((caught: unknown) => caught);
    const tookMs = Date.now() - startedAt;
    stage.own.thaw();
    expect(error).toMatchObject({ code: 'QUEUE_UNAVAILABLE', retryable: true });
    expect(tookMs).toBeLessThan(2_500);
  });

  test('names the address of Redis if it cannot connect', async () => {
    await using stage = await setClientStage();
    await expect(stage.connect({ redisUrl: 'redis://:hush@127.0.0.1:1' })).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringMatching(/^Redis at 127\.0\.0\.1:1 cannot be reached(?!.*hush)/),
    });
  });

  test('reports that a full Redis accepts nothing new', async () => {
    await using stage = await setClientStage(await startOwnRedis('--maxmemory', '3mb'));
    const session = await (await stage.connect()).session('s');
    const filling = Array.from({ length: 12 }, () => session.submit(`# ${'x'.repeat(500_000)}`));
    const ends = await Promise.allSettled(filling);
    const refused = ends.filter((end) => end.status === 'rejected').map(({ reason }) => reason);
    expect(refused.length).toBeGreaterThan(0);
    for (const reason of refused) {
      expect(reason).toMatchObject({ code: 'QUEUE_UNAVAILABLE', message: expect.stringContaining('Redis is full') });
    }
    await stage.own[Symbol.asyncDispose]();
  });

  test('submits a waiting command again under its id after Redis has lost it', async () => {
    await using stage = await setClientStage();
    const session = await (await stage.connect()).session('s', { priority: 5 });
    const command = await session.submit('echo kept');
    await stage.own.restart();
    await stage.startHost();
    const result = await command.result();
    expect(result).toMatchObject({ commandId: command.id, outcome: 'success', stdout: 'kept\n' });
    expect((await session.run('echo on')).stdout).toBe('on\n');
  });

  test('submits again to a driven session that Redis has lost, as a driven session', async () => {
    await using stage = await setClientStage();
    const session = await (await stage.connect()).session('s', {}, { driven: true });
    const command = await session.submit('echo kept');
    await stage.own.restart();
    await stage.startHost();
    expect((await command.result()).stdout).toBe('kept\n');
    const { state } = sessionKeys(stage.keyspace, 'default', 's');
    expect(await stage.redis.hmget(state, 'phase', 'driven')).toEqual(['open', '1']);
  });

  test('keeps readers and waiters through an outage of Redis', async () => {
    await using stage = await setClientStage();
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const command = await session.submit('echo a; sleep 0.5; echo b');
    const output = command.output();
    expect((await output.next()).value?.text).toBe('a\n');
    stage.own.freeze();
    setTimeout(() => stage.own.thaw(), 2_600);
    expect((await output.next()).value?.text).toBe('b\n');
    expect((await command.result()).stdout).toBe('a\nb\n');
  });

  test('refuses `durable` before it sends anything if Redis cannot guarantee it', async () => {
    await using stage = await setClientStage();
    const session = await (await stage.connect()).session('s');
    // The session is added to the index while it is opened.
    const before = await untilFound('the session is in the index', async () => {
      const keys = await stage.keys();
      return keys.some((key) => key.endsWith(':index')) && keys;
    });
    await expect(session.submit('true', { durable: true })).rejects.toMatchObject({ code: 'DURABLE_UNSUPPORTED' });
    expect(await stage.keys()).toEqual(before);
  });

  test('accepts `durable` if Redis writes to disk before each reply', async () => {
    const { mkdtemp, rm } = await import('node:fs/promises');
    const directory = await mkdtemp('/tmp/shellfleet-durable-');
    const own = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always', '--dir', directory);
    await using stage = await setClientStage(own);
    const session = await (await stage.connect()).session('s');
    expect((await session.submit('true', { durable: true })).id).toMatch(/^s\./);
    await stage[Symbol.asyncDispose]();
    await own[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  test('closes a session of a dead host immediately, and cancels its commands', async () => {
    await using stage = await setClientStage();
    const host = await stage.startHost({ id: 'dead' });
    const fleet = await stage.connect();
    const session = await fleet.session('s');
    await session.run('true');
    await host.leave();
    const queued = await session.submit('echo never');
    await untilFound('its host is known to be away', async () => (await session.info()).state === 'unreachable');
    await session.close();
    expect(await queued.result()).toMatchObject({ outcome: 'cancellation' });
    expect((await session.info()).state).toBe('closed');
  });

  test('goes on with the events of the fleet when their connection breaks', async () => {
    await using stage = await setClientStage();
    const fleet = await stage.connect();
    const seen: string[] = [];
    const following = (async () => {
      for await (const { type } of fleet.events()) seen.push(type);
    })();
    const session = await fleet.session('s');
    await untilFound('it follows', async () =>
      ((await stage.redis.client('LIST')) as string).includes('cmd=psubscribe'),
    );
    await session.submit('true');
    await untilFound('it is told', async () => seen.includes('session.queued'));
    await stage.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await session.close();
    await untilFound('it is told again', async () => seen.includes('session.closed'));
    expect(seen.filter((type) => type !== 'command.completed')).toEqual([
      'session.queued',
      'events.missed',
      'session.closed',
    ]);
    await Promise.all([fleet.close(), expect(following).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' })]);
  });

  test('rejects waits when it closes, and leaves no subscription behind', async () => {
    await using stage = await setClientStage();
    const fleet = await stage.connect();
    const command = await (await fleet.session('s')).submit('true');
    const waiting = command.result();
    const reading = Array.fromAsync(command.output());
    await untilFound('it reads', async () =>
      ((await stage.redis.client('LIST')) as string).includes('name=shellfleet-feeds'),
    );
    await Promise.all([
      fleet.close(),
      expect(reading).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' }),
      expect(waiting).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' }),
    ]);
    await untilFound(
      'nobody is subscribed',
      async () => ((await stage.redis.pubsub('CHANNELS', `${stage.keyspace}:*`)) as string[]).length === 0 || undefined,
    );
  });
});
