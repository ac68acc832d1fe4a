import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ToolEvent } from '@shellfleet/client';
import { encodeWakeUp, fleetKeys } from '@shellfleet/protocol';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { until } from '../support/until.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tools-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function writeModule(name: string, source: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, source);
  return path;
}

describe('hosts that offer different tools', () => {
  test('run each call where its tool is, and share one list of tools', async () => {
    await using stack = await startFleet({
      workers: 2,
      envs: [{ SHELLFLEET_TOOLS: toolModules('everyday') }, { SHELLFLEET_TOOLS: toolModules('everyday-again') }],
    });
    const tools = await stack.fleet.tools.list();
    expect(tools.map(({ name, hosts, differing }) => ({ name, hosts, differing }))).toEqual([
      { name: 'add', hosts: ['h1', 'h2'], differing: ['h2'] },
      { name: 'echo', hosts: ['h1'], differing: [] },
      { name: 'environment', hosts: ['h1'], differing: [] },
      { name: 'mark', hosts: ['h1'], differing: [] },
      { name: 'only_here', hosts: ['h2'], differing: [] },
      { name: 'other_name', hosts: ['h1'], differing: [] },
    ]);
    const calls = Array.from({ length: 8 }, (_, index) => stack.fleet.tools.call(index % 2 ? 'only_here' : 'echo', {}));
    const hosts = (await Promise.all(calls)).map(({ ok, hostId }) => [ok, hostId]);
    expect(hosts).toEqual(Array.from({ length: 8 }, (_, index) => [true, index % 2 ? 'h2' : 'h1']));
  });

  test('keep a call waiting for a tool whose host is away', async () => {
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday') } });
    await stack.workers[0]?.stop('SIGTERM');
    expect(await stack.fleet.tools.list()).toEqual([]);
    const calling = stack.fleet.tools.call('add', { a: 20, b: 22 });
    await stack.workers[0]?.start();
    expect(await calling).toMatchObject({ ok: true, output: { sum: 42 } });
  });
});

describe('modules', () => {
  // S4-04
  test('that are no tool or do not load are logged with a reason, not offered', async () => {
    const broken = {
      'syntax.mjs': 'export const x = {',
      'throws.mjs': 'throw new Error("not today")',
      'empty.mjs': 'export const helper = () => 1',
      'no-schema.mjs': 'export const bad = { input: { type: "object" }, run: () => 1 }',
      'no-function.mjs': 'export const bad = { input: {}, run: "text" }',
      'bad-name.mjs': 'export const bad = { name: "a b", input: {}, run: () => 1 }',
      'exits.mjs': 'process.exit(7)',
    };
    const paths = await Promise.all(Object.entries(broken).map(([name, source]) => writeModule(name, source)));
    const missing = join(directory, 'missing.mjs');
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday', ...paths, missing) } });
    expect((await stack.fleet.tools.list()).map(({ name }) => name)).toEqual([
      'add',
      'echo',
      'environment',
      'mark',
      'other_name',
    ]);
    const refused = linesOf(stack.workers[0]?.log, 'tools.module-refused');
    expect(
      Object.fromEntries(refused.map(({ module, reason }) => [(module as string).split('/').at(-1), reason])),
    ).toEqual({
      'syntax.mjs': expect.stringContaining('SyntaxError'),
      'throws.mjs': 'Error: not today',
      'empty.mjs': expect.stringContaining('exports no tool'),
      'no-schema.mjs': expect.stringContaining('The export bad is not valid: input: must be a schema of zod 4'),
      'no-function.mjs': expect.stringContaining('run: must be a function'),
      'bad-name.mjs': expect.stringContaining('name: must be 1 to 64'),
      'exits.mjs': expect.stringContaining('exit code 7'),
      'missing.mjs': expect.stringContaining('Cannot find module'),
    });
  });

  test('with the same tool name are both not offered, and the log names them', async () => {
    const modules = toolModules('everyday', 'everyday-again');
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: modules } });
    expect((await stack.fleet.tools.list()).map(({ name }) => name)).not.toContain('add');
    expect(linesOf(stack.workers[0]?.log, 'tools.duplicate-refused')).toEqual([
      expect.objectContaining({ 'shellfleet.tool.name': 'add', modules: modules.split(',') }),
    ]);
    expect(await stack.fleet.tools.call('add')).toMatchObject({ error: { code: 'unknown-tool' } });
  });
});

describe('the watch of tools', () => {
  // S4-06
  test('begins with the offered tools, then reports changes, starts and ends of calls', async () => {
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday') } });
    const abort = new AbortController();
    const seen: ToolEvent[] = [];
    const watching = (async () => {
      for await (const event of stack.fleet.tools.watch({ signal: abort.signal })) seen.push(event);
    })();
    const types = () => seen.map((event) => ('tool' in event ? `${event.type} ${event.tool.name}` : event.type));
    await until(types, (list) => list.length === 5);
    const { callId } = await stack.fleet.tools.call('add', { a: 1, b: 'x' });
    await until(types, (list) => list.includes('call.ended'));
    await stack.workers[0]?.stop('SIGTERM');
    await until(types, (list) => list.filter((type) => type === 'tool.removed').length === 5);
    await stack.workers[0]?.start();
    await until(types, (list) => list.length === 17);
    abort.abort();
    await expect(watching).rejects.toMatchObject({ name: 'AbortError' });
    const added = ['add', 'echo', 'environment', 'mark', 'other_name'].map((name) => `tool.added ${name}`);
    const removed = Array.from({ length: 5 }, () => 'tool.removed');
    expect(types()).toEqual([...added, 'call.started', 'call.ended', ...removed, ...added]);
    const at = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(seen.slice(5, 7)).toEqual([
      { type: 'call.started', at, callId, name: 'add', hostId: 'h1' },
      { type: 'call.ended', at, callId, name: 'add', hostId: 'h1', ok: false, code: 'arguments-invalid' },
    ]);
  });
});

describe('the queue of a tool', () => {
  test('logs and removes foreign jobs without running them, and runs the next call', async () => {
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday') } });
    const redis = new Redis(stack.redisUrl, { maxRetriesPerRequest: null });
    const queue = new Queue('tool-mark@default', { connection: redis, prefix: `${stack.keyspace}:{tools}` });
    const path = join(directory, 'garbage');
    const ulid = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
    const job = { call: ulid, tenant: 'default', inbox: ulid, args: 'x' };
    for (const [id, data] of [
      ['garbage', 'text'],
      ['nothing', null],
      [`call-${ulid}`, { ...job, more: 1 }],
      ['another-id', job],
      ['with-clear-args', { ...job, args: { path, id: 'garbage' } }],
      ['with-path', { ...job, tenant: '../x' }],
    ] as const) {
      await queue.add('call', data, { jobId: id });
    }
    // These arguments are well formed, but not sealed.
    const sealed = `1.abcdefgh.${Buffer.from(JSON.stringify({ path, id: 'forged' })).toString('base64url')}`;
    await queue.add('call', { ...job, args: sealed }, { jobId: `call-${'01ARZ3NDEKTSV4RRFFQ69G5FAW'}` });
    const forged = '01ARZ3NDEKTSV4RRFFQ69G5FAX';
    await queue.add('call', { ...job, call: forged, args: sealed }, { jobId: `call-${forged}` });
    expect(await stack.fleet.tools.call('mark', { path, id: 'real' })).toMatchObject({ ok: true });
    const log = () => linesOf(stack.workers[0]?.log, 'tool-job.invalid').map(({ job }) => job);
    await until(log, (jobs) => jobs.length === 7);
    expect(await queue.getJobCounts()).toMatchObject({
      waiting: 0,
      active: 0,
      completed: 0,
      failed: 0,
      prioritized: 0,
    });
    await until(
      () => linesOf(stack.workers[0]?.log, 'tool.arguments-unopened'),
      (lines) => lines.length === 1,
    );
    expect(await readFile(path, 'utf8')).toBe('begin real\nend real\n');
    await queue.close();
    redis.disconnect();
  });

  test('holds no arguments or outputs in clear, and no result that was delivered', async () => {
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday') } });
    const redis = new Redis(stack.redisUrl);
    // The connection is plain, because ioredis' monitor() fails when lines arrive together with the reply.
    const { hostname, port, password } = new URL(stack.redisUrl);
    const monitor = createConnection(Number(port), hostname);
    let seen = '';
    monitor.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
    });
    monitor.write(`${password === '' ? '' : `AUTH ${password}\r\n`}MONITOR\r\n`);
    await until(
      () => seen,
      (text) => text.includes('+OK'),
    );
    const secret = 'planted-5f0c2a';
    expect(await stack.fleet.tools.call('echo', { secret })).toMatchObject({ output: { secret } });
    await until(
      () => redis.keys(`${stack.keyspace}:{tools}:tenant:*:result:*`),
      (keys) => keys.length === 0,
    );
    const commands = seen.split('\r\n').filter((line) => line.includes(stack.namespace));
    expect(commands.some((command) => command.includes('tool-echo'))).toBe(true);
    expect(commands.filter((command) => command.includes(secret))).toEqual([]);
    const left = (await redis.keys(`${stack.keyspace}:{tools}:*`)).filter((key) => !key.includes(':tool-'));
    expect(left.map((key) => key.split(':').slice(3, 6).join(':')).sort()).toEqual([
      'known',
      'queues',
      'tenant:default:call',
      'tenant:default:events',
    ]);
    monitor.destroy();
    redis.disconnect();
  });

  test('needs no more connections for more tools and calls', async () => {
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday', 'hostile') } });
    const redis = new Redis(stack.redisUrl);
    const count = () => Promise.all([stack.workers[0]?.pid ?? 0, process.pid].map((pid) => ownConnections(redis, pid)));
    await stack.fleet.tools.call('add', { a: 1, b: 2 });
    const [worker = 0, producer = 0] = await count();
    expect(worker).toBeGreaterThan(0);
    expect(worker).toBeLessThanOrEqual(5);
    const names = ['add', 'echo', 'other_name', 'environment', 'prints'];
    await Promise.all(names.map((name) => stack.fleet.tools.call(name, { a: 1, b: 2 })));
    expect(await count()).toEqual([worker, producer]);
    redis.disconnect();
  });

  test('runs no call whose job is added again after it ran or was withdrawn', async () => {
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday') } });
    const redis = new Redis(stack.redisUrl, { maxRetriesPerRequest: null });
    const queue = new Queue('tool-mark@default', { connection: redis, prefix: `${stack.keyspace}:{tools}` });
    const path = join(directory, 'again');
    await stack.workers[0]?.stop('SIGTERM');
    const abort = new AbortController();
    const calling = stack.fleet.tools.call('mark', { path, id: 'once' });
    await until(
      () => queue.getWaitingCount(),
      (count) => count === 1,
    );
    const withdrawing = stack.fleet.tools.call('mark', { path, id: 'withdrawn' }, { signal: abort.signal });
    const withdrawn = expect(withdrawing).rejects.toMatchObject({ name: 'AbortError' });
    const jobs = await until(
      () => queue.getWaiting(),
      (list) => list.length === 2,
    );
    abort.abort();
    await withdrawn;
    await stack.workers[0]?.start();
    expect(await calling).toMatchObject({ ok: true });
    for (const job of jobs) await queue.add('call', job.data, { jobId: job.id ?? '' });
    await redis.lpush(fleetKeys(stack.keyspace).toolsNoted, queue.name);
    await redis.publish(fleetKeys(stack.keyspace).toolsWakeUps, encodeWakeUp({ type: 'tool', name: 'mark' }));
    await until(
      () => queue.getJobCountByTypes('waiting', 'active'),
      (count) => count === 0,
    );
    expect(await stack.fleet.tools.call('mark', { path, id: 'last' })).toMatchObject({ ok: true });
    expect(await readFile(path, 'utf8')).toBe('begin once\nend once\nbegin last\nend last\n');
    await queue.close();
    redis.disconnect();
  });

  test('gives a call to another host when the first host died before the call began', async () => {
    await using stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday') } });
    const redis = new Redis(stack.redisUrl, { maxRetriesPerRequest: null });
    await stack.workers[0]?.stop('SIGTERM');
    const calling = stack.fleet.tools.call('add', { a: 1, b: 1 });
    const dying = new Worker('tool-add@default', null, {
      connection: redis,
      prefix: `${stack.keyspace}:{tools}`,
      lockDuration: 1_000,
    });
    await until(
      () => dying.getNextJob('dying', { block: false }),
      (job) => job !== undefined,
    );
    await stack.workers[0]?.start();
    expect(await calling).toMatchObject({ ok: true, hostId: 'h1', output: { sum: 2 } });
    await dying.close(true);
    redis.disconnect();
  });
});

/** Counts the sockets of a process that are connected to Redis. */
async function ownConnections(redis: Redis, pid: number): Promise<number> {
  const port = redis.options.port ?? 0;
  const fds = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  const inodes = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
  const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/));
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return rows.filter((row) => row[2]?.endsWith(remote) && inodes.has(row[9] ?? '')).length;
}

function linesOf(log: string | undefined, message: string): Record<string, unknown>[] {
  return (log ?? '')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === message);
}
