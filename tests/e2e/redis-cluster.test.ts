import { randomBytes } from 'node:crypto';
import type { Command, Session } from '@shellfleet/client';
import { fleetKeys, sessionKeys } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { type OwnCluster, startOwnCluster } from '../support/own-cluster.ts';
import type { RedisProcess } from '../support/redis-process.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: a fleet on a Redis Cluster works like one on a single Redis. While a node is away, sessions on the others go
// on.

let own: OwnCluster;
let stack: TestFleet;
let inspect: FleetInspector;

beforeAll(async () => {
  own = await startOwnCluster(3, ['--appendonly', 'yes', '--appendfsync', 'always']);
  ({ stack, inspect } = await startInspectedFleet({ redisUrl: own.url }));
});
afterAll(() => endInspectedFleet(stack, inspect).finally(() => own[Symbol.asyncDispose]()));

const nodeOf = (session: string): Promise<RedisProcess> =>
  own.nodeOf(sessionKeys(stack.keyspace, 'default', session).state);

/** Returns the first session id with this beginning that is on the node. */
async function idOn(node: RedisProcess, beginning: string): Promise<string> {
  for (let index = 0; ; index += 1) {
    const id = `${beginning}-${index}`;
    if ((await nodeOf(id)) === node) return id;
  }
}

/** Uses a session in every usual way, through the public API. */
async function useSession(session: Session): Promise<unknown> {
  const streamed: string[] = [];
  await session.run('x=kept; echo one; echo two >&2', { onOutput: ({ text }) => streamed.push(text) });
  const bytes = randomBytes(300_000);
  await session.files.write('/workspace/file', bytes);
  const sleeping = await session.submit('echo begun; sleep 600');
  const waiting = await session.submit('echo waited $x');
  await until(
    () => inspect.events(session.id),
    (events) => events.some(({ type, entryId }) => type === 'command.output' && sleeping.id.endsWith(entryId)),
  );
  const cancelled = await sleeping.cancel('enough');
  const outcomes = [await sleeping.result(), await waiting.result()].map(({ outcome, stdout }) => [outcome, stdout]);
  const reader = await session.submit('cat', { stdin: { open: true } });
  await reader.write('read');
  await reader.closeStdin();
  const read = (await reader.result()).stdout;
  const same = Buffer.from(await session.files.read('/workspace/file')).equals(bytes);
  await session.close();
  return { streamed: streamed.sort(), cancelled, outcomes, read, same, state: (await session.info())?.state };
}

describe('a Redis Cluster', () => {
  test('serves sessions on every node: run, stream, wait, cancel, files and close', async () => {
    const ids = await Promise.all(own.nodes.map((node) => idOn(node, 'used')));
    const closed = new Set<string>();
    const following = (async () => {
      for await (const event of stack.fleet.events()) if (event.type === 'session.closed') closed.add(event.sessionId);
    })();
    // Ends with the fleet.
    following.catch(() => {});
    const uses = await Promise.all(ids.map(async (id) => useSession(await stack.fleet.session(id))));
    await until(
      () => closed.size,
      (count) => count === ids.length,
    );
    expect(uses).toEqual(
      ids.map(() => ({
        streamed: ['one\n', 'two\n'],
        cancelled: true,
        outcomes: [
          ['cancellation', 'begun\n'],
          ['success', 'waited kept\n'],
        ],
        read: 'read',
        same: true,
        state: 'closed',
      })),
    );
    expect((await Promise.all(ids.map((id) => inspect.broken(id)))).flat()).toEqual([]);
  });

  test('runs each task of a batch once, spread over the nodes', async () => {
    const tasks = Array.from({ length: 12 }, (_, index) => ({ id: `task-${index}`, script: `echo ${index}` }));
    const outputs: Record<string, string | undefined> = {};
    for await (const { id, results } of stack.fleet.batch(tasks, { concurrency: 8 })) outputs[id] = results[0]?.stdout;
    expect(outputs).toEqual(Object.fromEntries(tasks.map(({ id }, index) => [id, `${index}\n`])));
  });

  test('shares one question, its approval and the revocation between sessions of all nodes', async () => {
    const ids = await Promise.all(own.nodes.map((node) => idOn(node, 'asking')));
    const sessions = await Promise.all(ids.map((id) => stack.fleet.session(id, { approval: 'unless-trusted' })));
    const submit = () => Promise.all(sessions.map((session) => session.submit('touch asked')));
    const outcomesOf = async (commands: Command[]) =>
      (await Promise.all(commands.map((command) => command.result()))).map(({ outcome }) => outcome);
    const untilAllAsk = async () => {
      const [question] = await until(
        () => stack.fleet.approvals.list(),
        ([one]) => one?.count === ids.length,
      );
      return question?.id ?? '';
    };
    const first = await submit();
    const id = await untilAllAsk();
    await stack.fleet.approvals.approve(id, { scope: 'prefix' });
    const all = (outcome: string) => ids.map(() => outcome);
    expect(await outcomesOf(first)).toEqual(all('success'));
    expect(await outcomesOf(await submit())).toEqual(all('success'));
    await stack.fleet.approvals.revoke(id);
    const last = await submit();
    await stack.fleet.approvals.deny(await untilAllAsk());
    expect(await outcomesOf(last)).toEqual(all('denial'));
    expect((await Promise.all(ids.map((session) => inspect.broken(session)))).flat()).toEqual([]);
    await Promise.all(sessions.map((session) => session.close()));
  });

  test('refuses quotas that need counts of several nodes, and honours that of open sessions', async () => {
    const tenants = (quota: object) => ({ tenants: [{ name: 'bounded', ...quota }] });
    for (const name of ['maxQueued', 'maxDiskBytes']) {
      const path = `tenants[0].${name}`;
      await expect(stack.fleet.applyConfiguration(tenants({ [name]: 1 }))).rejects.toMatchObject({
        code: 'COMMAND_INVALID',
        message: expect.stringContaining(`${path} needs a fleet on one Redis server`),
        context: { issues: [{ path }] },
      });
    }
    expect(await stack.fleet.configuration()).toBeUndefined();
    const revision = await stack.fleet.applyConfiguration(tenants({ maxSessions: 1 }));
    await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.configuration === revision,
    );
    const fleet = await stack.connect({ tenant: 'bounded' });
    const [first, second] = await Promise.all(['first', 'second'].map((id) => fleet.session(id)));
    await first?.run('true');
    const waiting = await second?.submit('echo ran');
    const atQuota = { quota: 'maxSessions', used: 1, limit: 1 };
    await expect.poll(() => second?.info()).toMatchObject({ state: 'queued', atQuota });
    await first?.close();
    expect(await waiting?.result()).toMatchObject({ stdout: 'ran\n' });
    await second?.close();
    await stack.fleet.applyConfiguration({});
  });

  test('has at most five connections of worker and client to every node', async () => {
    for (const { redis } of own.nodes) {
      const lines = ((await redis.client('LIST')) as string).split('\n');
      for (const name of [/name=\S*shellfleet-worker/, /name=\S*shellfleet-(producer|feeds)/])
        expect(lines.filter((line) => name.test(line)).length).toBeLessThanOrEqual(5);
    }
  });

  test('fails the sessions of a lost node alone, and runs their commands once afterwards', async () => {
    const fleetNode = await own.nodeOf(fleetKeys(stack.keyspace).owners);
    const [lost, kept] = own.nodes.filter((node) => node !== fleetNode) as [RedisProcess, RedisProcess];
    const ids = await Promise.all([idOn(lost, 'away'), idOn(kept, 'there'), idOn(fleetNode, 'there')]);
    const [away, ...there] = await Promise.all(ids.map((id) => stack.fleet.session(id)));
    await Promise.all([away, ...there].map((session) => session?.run('n=1')));
    const running = await away?.submit('echo begun; sleep 1; echo over; touch /tmp/over');
    await inspect.untilOutput(ids[0] ?? '');
    await lost.kill();
    const refused = away?.submit('echo refused').then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(await refused).toMatchObject({ code: 'QUEUE_UNAVAILABLE', retryable: true });
    const results = await Promise.all(there.map((session) => session?.run('n=$((n + 1)); echo $n')));
    expect(results.map((result) => result?.stdout)).toEqual(['2\n', '2\n']);
    await lost.start();
    expect(await running?.result()).toMatchObject({ outcome: 'success', stdout: 'begun\nover\n' });
    const after = await until(
      () => away?.run('echo $n').catch(() => undefined),
      (result) => result !== undefined,
    );
    expect(after).toMatchObject({ stdout: '1\n', shell: { state: 'kept', epoch: 1 } });
    expect((await Promise.all(ids.map((id) => inspect.broken(id)))).flat()).toEqual([]);
  });
});
