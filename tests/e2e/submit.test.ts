import type { Command } from '@shellfleet/client';
import { readGeneration, submit } from '@shellfleet/mailbox';
import { payloadKey, sessionKeys } from '@shellfleet/protocol';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 20 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe('submit', () => {
  test('runs a command once per idempotency key, from any client, and marks Results deduplicated', async () => {
    const session = await stack.fleet.session('key');
    const other = await (await stack.connect()).session('key');
    const options = { idempotencyKey: 'order-1', env: { A: '1', B: '2' } };
    const script = 'echo ran >> log; wc -l < log';
    const commands = await Promise.all([
      session.submit(script, options),
      session.submit(script, options),
      other.submit(script, { env: { B: '2', A: '1' }, idempotencyKey: 'order-1' }),
    ]);
    expect(new Set(commands.map(({ id }) => id)).size).toBe(1);
    const results = await Promise.all(commands.map((command: Command) => command.result()));
    expect(results.map(({ deduplicated }) => deduplicated).sort()).toEqual([false, true, true]);
    for (const result of results)
      expect(result).toEqual(expectedResult('key', { stdout: '1\n', deduplicated: result.deduplicated }));
    // The key holds long after the end of the command.
    expect(await session.run(script, options)).toEqual(expectedResult('key', { stdout: '1\n', deduplicated: true }));
    expect((await session.run(script, { ...options, idempotencyKey: 'order-2' })).stdout).toBe('2\n');
  });

  test('reports a conflict when a key of this session has another payload', async () => {
    const session = await stack.fleet.session('conflict');
    const first = await session.submit('echo one', { idempotencyKey: 'k' });
    await expect(session.run('echo two', { idempotencyKey: 'k' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
      retryable: false,
      context: { sessionId: 'conflict', commandId: first.id },
    });
    await expect(session.run('echo one', { idempotencyKey: 'k', cwd: '/tmp' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
    const other = await stack.fleet.session('no-conflict');
    expect((await other.run('echo two', { idempotencyKey: 'k' })).stdout).toBe('two\n');
  });

  test('runs a command once when ioredis sends it again after a lost reply', async () => {
    const redis = new Redis(stack.redisUrl);
    const keys = sessionKeys(stack.keyspace, 'default', 'twice');
    const session = await stack.fleet.session('twice');
    const command = await session.submit('echo ran >> log; cat log');
    const record = (entry: string) => `${keys.prefix}record:${entry}`;
    const entryId = command.id.slice('twice.'.length);
    const payload = (await redis.get(payloadKey(keys, entryId))) ?? 'gone: it has ended';
    const generation = (await readGeneration(redis, keys))?.generation ?? '';
    const again = {
      entryId,
      generation,
      kind: 'command',
      payload,
      payloadHash: '',
      inbox: 'nobody',
      retry: 'never',
    } as const;
    const early = await submit(redis, keys, again);
    expect(await command.result()).toEqual(expectedResult('twice', { stdout: 'ran\n' }));
    const late = await submit(redis, keys, again);
    expect([early.type, late.type]).toEqual(['accepted-before', 'accepted-before']);
    expect((await session.run('cat log')).stdout).toBe('ran\n');
    expect(await redis.exists(record(entryId))).toBe(1);
    redis.disconnect();
  });

  test('refuses `durable` if Redis cannot promise durability, and accepts it otherwise', async () => {
    const session = await stack.fleet.session('durable');
    const redis = new Redis(stack.redisUrl);
    const aof = (await redis.config('GET', 'appendonly')) as string[];
    redis.disconnect();
    expect(aof[1]).toBe('no');
    await expect(session.submit('echo never', { durable: true })).rejects.toMatchObject({
      code: 'DURABLE_UNSUPPORTED',
      retryable: false,
    });
    expect((await session.info()).queuedCommands).toBe(0);
  });

  test('returns an id that finds output and Result from another process', async () => {
    const session = await stack.fleet.session('found');
    const command = await session.submit('echo out; echo err >&2');
    const result = await command.result();
    const found = await (await stack.connect()).command(command.id);
    expect(await found.result()).toEqual(result);
    const text: string[] = [];
    for await (const chunk of found.output()) text.push(`${chunk.stream} ${chunk.text}`);
    expect(text.sort()).toEqual(['stderr err\n', 'stdout out\n']);
    await expect(stack.fleet.command('found.01ARZ3NDEKTSV4RRFFQ69G5FAV')).rejects.toMatchObject({
      code: 'RESULT_EXPIRED',
    });
    for (const id of [
      '',
      'no-dot',
      'found.',
      '.01ARZ3NDEKTSV4RRFFQ69G5FAV',
      'a:b.01ARZ3NDEKTSV4RRFFQ69G5FAV',
      'x'.repeat(5_000_000),
    ])
      await expect(stack.fleet.command(id)).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
  });

  test('passes everything to onOutput before the Result, and rejects with its errors', async () => {
    const session = await stack.fleet.session('on-output');
    const onOutput = vi.fn();
    const result = await session.run('seq 1 2000', { onOutput });
    const received = onOutput.mock.calls.map(([chunk]) => chunk.text).join('');
    expect(received).toBe(result.stdout);
    const broken = session.run('echo x', {
      onOutput: () => {
        throw new Error('mine');
      },
    });
    await expect(broken).rejects.toThrow('mine');
    expect((await session.run('echo on')).stdout).toBe('on\n');
  });
});
