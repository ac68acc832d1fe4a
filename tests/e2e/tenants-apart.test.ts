import { setTimeout as delay } from 'node:timers/promises';
import { Fleet } from '@shellfleet/client';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { SessionTerminal } from '../support/session-terminal.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { tryCommand } from '../support/try-command.ts';
import { until } from '../support/until.ts';

// Promise: with the access list of `shellfleet tenants acl`, a tenant reaches nothing of another tenant in Redis.

const PASSWORD = 'of-a-tenant';
const SLOTS = 6;
const LONG_CALL = { path: '/dev/null', id: 'long', waitMs: 60_000 };

let server: OwnRedis;
let stack: TestFleet;
/** The client of Redis of each tenant. */
const users: Record<string, Redis> = {};
const fleets: Record<string, Fleet> = {};

const urlOf = (tenant: string) => server.url.replace('redis://', `redis://tenant-${tenant}:${PASSWORD}@`);
const fleetOf = (tenant: string) => fleets[tenant] as Fleet;

const tryAs = (tenant: string, command: readonly string[]) => tryCommand(users[tenant] as Redis, command);

/** Returns those of the commands that the user may send. */
async function allowed(tenant: string, commands: readonly (readonly string[])[]): Promise<string[]> {
  const replies = await Promise.all(commands.map((command) => tryAs(tenant, command)));
  return commands.flatMap((command, index) => (replies[index] === 'NOPERM' ? [] : [command.join(' ')]));
}

beforeAll(async () => {
  server = await startOwnRedis();
  stack = await startFleet({
    redisUrl: server.url,
    slots: SLOTS,
    env: { SHELLFLEET_TOOLS: toolModules('everyday') },
  });
  for (const tenant of ['a', 'b']) {
    const { stdout } = await new FleetCli(stack).text(['tenants', 'acl', tenant]);
    const words = stdout.trim().replace('PASSWORD', PASSWORD).split(' ');
    await server.redis.call('ACL', ...words.slice(1));
    users[tenant] = new Redis(urlOf(tenant));
    const { namespace, sealKey } = stack;
    fleets[tenant] = await Fleet.connect({ redisUrl: urlOf(tenant), namespace, tenant, sealKeys: [sealKey] });
  }
});
afterAll(async () => {
  for (const fleet of Object.values(fleets)) await fleet.close();
  for (const redis of Object.values(users)) redis.disconnect();
  await stack?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

describe('the access list of a tenant', () => {
  test('is refused for a name that could match other tenants', async () => {
    const { exitCode, stdout, stderr } = await new FleetCli(stack).text(['tenants', 'acl', 'a*']);
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining('name: may only hold A-Z a-z 0-9'),
    });
  });
});

describe('the Redis user of a tenant', () => {
  test('runs commands, with output, files, open stdin, terminals and cancellation', async () => {
    const fleet = fleetOf('a');
    const session = await fleet.session('work', { labels: { team: 'a' } }, { driven: true });
    const shown: string[] = [];
    await session.run('x=1; echo out; sleep 600 &', { onOutput: ({ text }) => shown.push(text) });
    await session.files.write('/workspace/f', Buffer.from('bytes'));
    const reader = await session.submit('cat; cat f', { stdin: { open: true }, idempotencyKey: 'k' });
    await reader.write('typed ');
    await reader.closeStdin();
    expect((await reader.result()).stdout).toBe('typed bytes');
    expect((await session.submit('cat; cat f', { stdin: { open: true }, idempotencyKey: 'k' })).id).toBe(reader.id);
    const sleeping = await session.submit('sleep 600');
    await sleeping.cancel();
    expect([(await sleeping.result()).outcome, shown.join('')]).toEqual(['cancellation', 'out\n']);
    expect(Buffer.from(await session.files.read('/workspace/f')).toString()).toBe('bytes');
    const log: string[] = [];
    for await (const { text } of (await fleet.command(reader.id)).output()) log.push(text);
    expect(log.join('')).toBe('typed bytes');
    const person = new SessionTerminal(await session.attach());
    await person.type('echo $((6*7))\n');
    await person.sees('42');
    await person.terminal.close();
    expect(await session.info()).toMatchObject({ state: 'ready', background: [{ command: 'sleep 600' }] });
    await session.restart();
    await session.close();
    expect(await fleet.run('echo once')).toMatchObject({ outcome: 'success', stdout: 'once\n' });
    const listed = await Array.fromAsync(fleet.sessions({ all: true }));
    expect(listed.map(({ id, state }) => [id, state])).toContainEqual(['work', 'closed']);
  });

  test('answers and revokes questions, calls and cancels tools, and lists hosts', async () => {
    const fleet = fleetOf('a');
    const session = await fleet.session('asks', { approval: 'unless-trusted' });
    const command = await session.submit('touch /tmp/asked');
    const [question] = await until(
      () => fleet.approvals.list(),
      (found) => found.length === 1,
    );
    await fleet.approvals.approve(question?.id ?? '', { scope: 'session' });
    expect(await command.result()).toMatchObject({ outcome: 'success' });
    await fleet.approvals.revoke(question?.id ?? '');
    await session.close();
    expect(await fleet.tools.call('add', { a: 1, b: 2 })).toMatchObject({ ok: true, output: { sum: 3 } });
    const stop = new AbortController();
    const watched = fleet.tools.watch({ signal: stop.signal });
    await watched.next();
    const call = fleet.tools.call('mark', LONG_CALL, { signal: stop.signal });
    for await (const event of watched) if (event.type === 'call.started') break;
    stop.abort(new Error('no longer needed'));
    await expect(call).rejects.toThrow('no longer needed');
    expect((await fleet.tools.list()).map(({ name }) => name)).toContain('add');
    expect(await fleet.hosts()).toMatchObject([{ id: 'h1', state: 'up' }]);
  });

  test('submits a detached batch, fetches its results, and removes it', async () => {
    const { batches } = fleetOf('a');
    await batches.submit([{ id: 'one', script: 'echo $((6*7))' }], { name: 'of-a' });
    const [result] = await Array.fromAsync(batches.attach('of-a'));
    expect(result?.results).toMatchObject([{ outcome: 'success', stdout: '42\n' }]);
    expect(await batches.list()).toMatchObject([{ name: 'of-a', state: 'ended', totals: { passed: 1 } }]);
    expect(await fleetOf('b').batches.list()).toEqual([]);
    await batches.remove('of-a');
  });

  test('follows the events of its own sessions, and not those of all tenants', async () => {
    const [fleet, other] = [fleetOf('a'), fleetOf('b')];
    const [theirs, own] = [await other.session('theirs'), await fleet.session('own')];
    const seen: string[] = [];
    for await (const event of fleet.events({ after: String(Date.now() - 60_000) })) {
      if (!('sessionId' in event)) continue;
      seen.push(`${event.tenant} ${event.type}`);
      if (seen.length === 1) await Promise.all([theirs.close(), own.close()]);
      if (event.sessionId === 'own' && event.type === 'session.closed') break;
    }
    expect(seen.filter((one) => !one.startsWith('a '))).toEqual([]);
    const all = fleet.events({ allTenants: true }).next();
    await expect(all).rejects.toMatchObject({ code: 'REDIS_UNSUITABLE' });
  });

  test('cannot do what is an operator’s', async () => {
    const fleet = fleetOf('a');
    const tries = [
      () => fleet.drainHost('h1'),
      () => fleet.cordonHost('h1'),
      () => fleet.hostImages('h1'),
      () => fleet.configuration(),
      () => fleet.load(),
      () => fleet.tenants(),
      () => fleet.applyConfiguration({ tenants: [] }),
      () => fleet.keys.create({ name: 'own', scopes: ['read'] }),
      () => fleet.keys.list(),
      () => fleet.keys.revoke('own'),
    ];
    for (const one of tries) await expect(one(), String(one)).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
  });

  test('cannot list keys, channels or clients, and follows no change of keys', async () => {
    const commands = ['KEYS *', 'SCAN 0', 'RANDOMKEY', 'DBSIZE', 'PUBSUB CHANNELS', 'PUBSUB NUMPAT', 'CLIENT LIST'];
    const more = ['CLIENT TRACKING ON BCAST', 'MONITOR', 'ACL LIST', 'ACL LOG', 'CONFIG GET *', 'SLOWLOG GET'];
    const others = [
      'FUNCTION LIST',
      'SCRIPT FLUSH',
      'SCRIPT KILL',
      'FLUSHALL',
      'FLUSHDB',
      'SWAPDB 0 1',
      'MEMORY STATS',
    ];
    const patterns = ['PSUBSCRIBE *', `PSUBSCRIBE ${stack.keyspace}:*`, 'SUBSCRIBE __keyevent@0__:set'];
    const inScript = ['EVAL return{redis.call("KEYS","*")} 0', 'EVAL return{redis.call("SCAN",0)} 0'];
    const tries = [...commands, ...more, ...others, ...patterns, ...inScript].map((line) => line.split(' '));
    expect(await allowed('a', tries)).toEqual([]);
  });
});

/** The tenant that has a key or channel, or '' for those of the whole fleet. */
const ownerOf = (name: string) =>
  /\{(\w+):|:tenant:(\w+):|@(\w+):|:(?:feed|inbox|wakeups):(\w+):/.exec(name)?.slice(1).find(Boolean) ?? '';

/** The name of a key or channel without what differs from fleet to fleet. */
const kindOf = (name: string) =>
  name
    .replace(/^[^:]+:(?:[0-9a-f]{12}:)?/, '')
    .replace(/\{b:\w*-?\w*\}/, (tag) => (tag === '{b:}' ? tag : '{b:s}'))
    .replace(/[0-9A-Z]{26}/g, '<id>');

/** Has the tenant do at once whatever leaves keys and channels: runs, waits, asks, reads stdin, calls a tool. */
async function occupy(fleet: Fleet): Promise<AsyncDisposable> {
  const running = await fleet.session('runs', {}, { driven: true });
  const command = await running.submit('echo begun; cat', { stdin: { open: true }, idempotencyKey: 'k' });
  await command.write('some');
  const output = command.output()[Symbol.asyncIterator]();
  await output.next();
  await running.submit('echo waits');
  const terminal = await running.attach();
  await new SessionTerminal(terminal).sees('$');
  const asking = await fleet.session('asks', { approval: 'unless-trusted' });
  await asking.submit('touch /tmp/asked');
  const following = fleet.approvals.watch();
  await until(
    () => fleet.approvals.list(),
    (found) => found.length === 1,
  );
  await following.next();
  const closed = await fleet.session('closed');
  await closed.close();
  const stop = new AbortController();
  const watched = fleet.tools.watch({ signal: stop.signal });
  await watched.next();
  const call = fleet.tools.call('mark', LONG_CALL, { signal: stop.signal }).catch(() => {});
  for await (const event of watched) if (event.type === 'call.started') break;
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([call, following.return(undefined), output.return?.(undefined), terminal.close()]);
      await Promise.all([running.close(), asking.close()]);
    },
  };
}

/** Opens sessions until no slot is free, and some that wait. */
async function fill(fleet: Fleet): Promise<void> {
  const fillers = await Promise.all(Array.from({ length: SLOTS }, (_, n) => fleet.session(`fills-${n}`)));
  for (const filler of fillers) await filler.submit('sleep 600');
}

async function everyKey(): Promise<Map<string, string>> {
  const keys = await server.redis.keys(`${stack.namespace}:*`);
  const types = await Promise.all(keys.map((key) => server.redis.type(key)));
  return new Map(keys.map((key, index) => [key, types[index] ?? '']));
}

const READS: Record<string, (key: string) => string[]> = {
  string: (key) => ['GET', key],
  hash: (key) => ['HGETALL', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, '0', '-1'],
  stream: (key) => ['XRANGE', key, '-', '+'],
};

const readsOf = (key: string, type: string) => [
  READS[type]?.(key) ?? ['GET', key],
  ['EXISTS', key],
  ['TYPE', key],
  ['PTTL', key],
  ['EVAL', "return redis.call('EXISTS', KEYS[1])", '1', key],
  ['EVAL', `return redis.call('TYPE', '${key}')`, '0'],
];
const writesOf = (key: string) => [
  ['SET', key, 'x'],
  ['DEL', key],
  ['UNLINK', key],
  ['PEXPIRE', key, '1'],
  ['RENAME', key, `${key}x`],
  ['APPEND', key, 'x'],
  ['HSET', key, 'x', 'x'],
  ['RPUSH', key, 'x'],
  ['LPOP', key],
  ['SADD', key, 'x'],
  ['ZADD', key, '0', 'x'],
  ['XADD', key, '*', 'x', 'x'],
  ['EVAL', `return redis.call('DEL', '${key}')`, '0'],
];

describe('every key and channel of a busy fleet of two tenants', () => {
  let busy: AsyncDisposable[];
  let keys: Map<string, string>;
  let channels: string[];
  beforeAll(async () => {
    const quotas = { maxSessions: 100, maxQueued: 1_000, maxDiskBytes: 2 ** 40 };
    await stack.fleet.applyConfiguration({ tenants: ['a', 'b'].map((name) => ({ name, ...quotas })) });
    busy = [await occupy(fleetOf('a')), await occupy(fleetOf('b'))];
    await fill(fleetOf('a'));
    await fill(fleetOf('b'));
    const counted = ['demand', 'tenant:b:disk'].map((name) => `${stack.keyspace}:{x0}:${name}`);
    await until(everyKey, (found) => counted.every((key) => found.has(key)));
    keys = await everyKey();
    channels = (await server.redis.pubsub('CHANNELS', `${stack.namespace}:*`)) as string[];
  });
  afterAll(async () => {
    for (const one of busy ?? []) await one[Symbol.asyncDispose]();
  });

  test('is there to be walked', () => {
    const kinds = [...keys.keys(), ...channels].filter((name) => ownerOf(name) === 'b').map(kindOf);
    const known = [
      'queue',
      'state',
      'stream',
      'record:<id>',
      'payload:<id>',
      'key:',
      'driver',
      'input:<id>',
      'terminal:',
    ];
    const wanted = [
      ...known.map((name) => `{b:s}:${name}`),
      ...['questions', 'pending', 'asked', 'askers:', 'feed', 'waiting'].map((name) => `{b:}:${name}`),
      ...[
        '{x0}:tenant:b:index',
        '{x0}:tenant:b:quotas',
        '{x0}:tenant:b:disk',
        '{x0}:sessions-docker',
        '{tools}:tenant:b:call:',
        '{tools}:tenant:b:events',
      ],
      ...['feed:b:', 'inbox:b:', 'wakeups:b:'],
    ];
    expect(wanted.filter((name) => !kinds.some((kind) => kind.startsWith(name)))).toEqual([]);
  });

  test('includes sessions that wait, with their positions among both tenants', async () => {
    const readPositions = async () => {
      const infos = await Promise.all(['a', 'b'].map((tenant) => Array.fromAsync(fleetOf(tenant).sessions())));
      return infos.flat().flatMap(({ position }) => position ?? []);
    };
    // A host publishes once a second what each tenant waits for.
    const positions = await until(readPositions, (found) => found.length > 0 && Math.max(...found) === found.length);
    expect(positions.length).toBeGreaterThan(SLOTS);
  });

  test('lets no tenant read, write or remove a key of the other', async () => {
    const theirs = [...keys].filter(([key]) => ownerOf(key) === 'b');
    expect(theirs.length).toBeGreaterThan(30);
    for (const [key, type] of theirs)
      expect(await allowed('a', [...readsOf(key, type), ...writesOf(key)]), key).toEqual([]);
  });

  test('lets a tenant read heartbeats and settings of the fleet, and write none of them', async () => {
    const shared = [...keys].filter(([key]) => ownerOf(key) === '');
    const readable: string[] = [];
    for (const [key, type] of shared) {
      const [read] = readsOf(key, type);
      if ((await tryAs('a', read ?? [])) !== 'NOPERM') readable.push(kindOf(key));
      expect(await allowed('a', writesOf(key)), key).toEqual([]);
    }
    expect(readable.sort()).toEqual(
      [
        ...['alive', 'boot', 'tools'].map((name) => `{x0}:host:h1:${name}`),
        ...['{tools}:known', '{x0}:demand', '{x0}:fleet', '{x0}:hosts', '{x0}:retention'],
      ].sort(),
    );
  });

  test('lets a tenant only notify hosts in what all tenants share', async () => {
    const { keyspace } = stack;
    const lists = [`${keyspace}:{x0}:noted`, `${keyspace}:{tools}:noted`, `${keyspace}:{x0}:host:h1:callers`];
    for (const key of lists) {
      expect(await allowed('a', [['LPUSH', key, 'b']])).toEqual([`LPUSH ${key} b`]);
      const others = [...readsOf(key, 'list'), ...writesOf(key), ['LTRIM', key, '1', '0'], ['LLEN', key]];
      expect(await allowed('a', others), key).toEqual([]);
    }
  });

  test('lets no tenant subscribe or publish to a channel of the other', async () => {
    const theirs = channels.filter((channel) => ownerOf(channel) === 'b');
    expect(theirs.length).toBeGreaterThan(4);
    const shared = channels.filter((channel) => ownerOf(channel) === '');
    const commands = theirs.flatMap((channel) => [
      ['SUBSCRIBE', channel],
      ['PSUBSCRIBE', channel],
      ['SSUBSCRIBE', channel],
      ['PUBLISH', channel, 'x'],
      ['EVAL', `return redis.call('PUBLISH', '${channel}', 'x')`, '0'],
    ]);
    const listening = shared.flatMap((channel) => [
      ['SUBSCRIBE', channel],
      ['PSUBSCRIBE', channel],
    ]);
    expect(await allowed('a', [...commands, ...listening])).toEqual([]);
  });

  test('ignores calls and wake-ups that a tenant sends in the name of the other', async () => {
    const { keyspace } = stack;
    const fleet = fleetOf('b');
    const session = await fleet.session('runs');
    const { runningCommandId } = await session.info();
    const generation = (await server.redis.hget(`${keyspace}:{b:runs}:state`, 'generation')) ?? '';
    const close = JSON.stringify({ type: 'close', tenant: 'b', session: 'runs', generation });
    const own = `${keyspace}:{x0}:tenant:a:calls:h1`;
    expect(await tryAs('a', ['XADD', own, '*', 'd', close])).toBe('may');
    expect(await tryAs('a', ['LPUSH', `${keyspace}:{x0}:host:h1:callers`, 'a'])).toBe('may');
    expect(await tryAs('a', ['PUBLISH', `${keyspace}:{x0}:host:h1:wakeups`, '{"type":"calls"}'])).toBe('may');
    await until(
      () => server.redis.xlen(own),
      (length) => length === 0,
    );
    await delay(200);
    expect(await session.info()).toMatchObject({ state: 'busy', runningCommandId });
    expect(stack.workers[0]?.log).toContain('call.invalid');
  });
});
