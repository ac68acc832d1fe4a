import { readdir, readFile, readlink } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingInRedis } from '../support/everything-in-redis.ts';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ workers: 2, slots: 4 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const free = async () => (await stack.fleet.hosts()).map((host) => host.free);

describe('a fleet', () => {
  test('runs a one-shot in a fresh shell, leaves nothing of it, and frees its slot', async () => {
    const results = [
      await stack.fleet.run('n=$((n + 1)); echo $n; touch f; ls'),
      await stack.fleet.run('n=$((n + 1)); echo $n; ls'),
    ];
    expect(results).toEqual(
      ['1\nf\n', '1\n'].map((stdout, index) =>
        expectedResult(results[index]?.sessionId ?? '', { stdout, hostId: expect.stringMatching(/^h[12]$/) as never }),
      ),
    );
    expect(results[0]?.sessionId).not.toBe(results[1]?.sessionId);
    const failing = await stack.fleet.run('echo "$A"; exit 9', { spec: { env: { A: 'a' } }, timeoutMs: 5_000 });
    expect(failing).toMatchObject({ outcome: 'failure', exitCode: 9, stdout: 'a\n' });
    await until(free, (slots) => slots.every((each) => each === 4));
  });

  test('ends each of twelve one-shot runs on eight slots once', async () => {
    const scripts = Array.from({ length: 12 }, (_, index) => `echo ${index}`);
    const results = await Promise.all(scripts.map((script) => stack.fleet.run(script)));
    expect(results.map(({ stdout }) => stdout)).toEqual(scripts.map((_script, index) => `${index}\n`));
  });

  test('opens sessions near another one while its host has slots, else elsewhere after 2 s', async () => {
    const first = await stack.fleet.session('near-first');
    const { hostId } = await first.run('true');
    const open = (id: string) => stack.fleet.session(id, { near: 'near-first' });
    const near = await Promise.all(['near-1', 'near-2', 'near-3'].map(open));
    const results = await Promise.all(near.map((session) => session.run('true')));
    expect(results.map((result) => result.hostId)).toEqual(Array(3).fill(hostId));
    const next = await open('near-next');
    const command = await next.submit('true');
    expect(await next.info()).toMatchObject({
      position: 1,
      needs: { policy: 'docker' },
      wishes: { near: 'near-first' },
    });
    const { hostId: elsewhere, timings } = await command.result();
    expect([hostId, elsewhere].sort()).toEqual(['h1', 'h2']);
    expect(timings.queuedMs).toSatisfy((ms) => ms > 1_500 && ms < 4_000);
    await Promise.all([first, ...near, next].map((session) => session.close()));
  });

  test('lists its sessions with their state, and filters by it', async () => {
    const [idle, busy, over] = await Promise.all(
      ['ls-idle', 'ls-busy', 'ls-over'].map((id) => stack.fleet.session(id)),
    );
    await Promise.all([idle?.run('true'), over?.run('true')]);
    await over?.close();
    const command = await busy?.submit('sleep 4321');
    await until(
      async () => (await busy?.info())?.state,
      (state) => state === 'busy',
    );
    const list = async (state?: 'ready' | 'busy' | 'lost') => {
      const ids: string[] = [];
      for await (const info of stack.fleet.sessions(state === undefined ? {} : { state }))
        if (/^ls-(idle|busy)$/.test(info.id)) ids.push(`${info.id} ${info.state} ${info.runningCommandId ?? '-'}`);
      return ids.sort();
    };
    const [busyLine, idleLine] = [`ls-busy busy ${command?.id}`, 'ls-idle ready -'];
    expect(await list()).toEqual([busyLine, idleLine]);
    expect([await list('busy'), await list('ready'), await list('lost')]).toEqual([[busyLine], [idleLine], []]);
    expect((await over?.info())?.state).toBe('closed');
    await Promise.all([idle?.close(), busy?.close()]);
    expect((await command?.result())?.outcome).toBe('cancellation');
  });

  test('rejects info with SESSION_NOT_FOUND when a session’s state is gone from Redis', async () => {
    const session = await stack.fleet.session('forgotten');
    const redis = new Redis(stack.redisUrl);
    await redis.del(`${stack.keyspace}:{default:forgotten}:state`);
    redis.disconnect();
    await expect(session.info()).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
      context: { sessionId: 'forgotten' },
    });
  });

  test('shows another tenant nothing of a session with the same id', async () => {
    const session = await stack.fleet.session('tenants');
    const command = await session.submit('secret=ours; echo $secret');
    await command.result();
    const other = await stack.connect({ tenant: 'other' });
    const theirs = await other.session('tenants');
    expect((await theirs.run('echo "[$secret]"')).stdout).toBe('[]\n');
    await expect(other.command(command.id)).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
    for await (const info of other.sessions()) expect(info.id).toBe('tenants');
    await theirs.close();
    expect((await session.run('echo $secret')).stdout).toBe('ours\n');
    await session.close();
  });

  // invariant 6
  test('stores nothing of what was submitted in Redis in clear', async () => {
    const session = await stack.fleet.session('sealed', { env: { PASSWORD: 'swordfish-in-env' } });
    const holder = await session.submit('sleep 4321');
    const command = await session.submit('echo swordfish-in-script', {
      stdin: 'swordfish-in-stdin',
      env: { A: 'swordfish-in-command-env' },
    });
    const written = session.files.write('/tmp/f', 'swordfish-in-file', { ordered: true }).catch(() => {});
    await until(
      () => session.info(),
      ({ queuedCommands }) => queuedCommands === 2,
    );
    const redis = new Redis(stack.redisUrl);
    const everything = await everythingInRedis(redis, stack.namespace);
    redis.disconnect();
    // The payloads are stored sealed, and the ids of queued commands in clear.
    expect(everything).toContain(command.id.slice('sealed.'.length));
    expect(everything).not.toContain('swordfish');
    expect(everything).not.toContain(Buffer.from('swordfish').toString('base64'));
    await session.close();
    expect((await holder.result()).outcome).toBe('cancellation');
    await written;
  });

  // invariant 10
  test('holds at most five connections to Redis, whatever the number of sessions and readers', async () => {
    const port = Number(new URL(stack.redisUrl).port);
    const producer = await stack.connect();
    const sessions = await Promise.all(Array.from({ length: 30 }, (_, index) => producer.session(`many-${index}`)));
    const leave = new AbortController();
    const readers = sessions.map(async (session) => {
      for await (const { type } of session.events({ signal: leave.signal })) expect(type).not.toBe('session.lost');
    });
    for (const session of sessions.slice(0, 6)) await session.run('echo on');
    const counts = [
      await countConnections(process.pid, port),
      ...(await Promise.all(stack.workers.map(({ pid }) => countConnections(pid, port)))),
    ];
    leave.abort();
    await Promise.allSettled(readers);
    await Promise.all(sessions.map((session) => session.close()));
    for (const count of counts) {
      expect(count).toBeGreaterThan(0);
      expect(count).toBeLessThanOrEqual(5);
    }
  });
});

/** Counts the sockets of a process whose other end is this port, as the kernel lists them. */
async function countConnections(pid: number, port: number): Promise<number> {
  const table = await readFile(`/proc/${pid}/net/tcp`, 'utf8');
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/));
  const inodes = new Set(rows.filter((row) => row[2]?.endsWith(remote) && row[3] === '01').map((row) => row[9]));
  const links = await Promise.all(
    (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')),
  );
  return links.filter((link) => inodes.has(/^socket:\[(\d+)\]$/.exec(link)?.[1])).length;
}
