// Streaming of stdin on the side of the submitter: what happens when Redis is full, and how far the source is read.
import { recordKey, sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { setClientStage } from '../support/client-stage.ts';
import { until } from '../support/until.ts';

describe('streamed stdin', () => {
  test('is delayed by a full Redis while its lease is renewed', async () => {
    await using stage = await setClientStage();
    await stage.startHost();
    const fleet = await stage.connect();
    const session = await fleet.session('s');
    const next = Promise.withResolvers<void>();
    async function* source() {
      yield 'one ';
      await next.promise;
      yield 'two ';
      yield 'three';
    }
    const command = await session.submit('cat', { stdin: source(), timeoutMs: 60_000 });
    const record = recordKey(sessionKeys(stage.keyspace, 'default', 's'), command.id.slice(2));
    const lease = async () => Number(await stage.redis.hget(record, 'lease'));
    await until(
      () => stage.redis.hget(record, 'written'),
      (written) => written === '4',
    );
    await stage.redis.config('SET', 'maxmemory', '1');
    next.resolve();
    // Waits for longer than a lease lasts without a renewal.
    const from = await lease();
    await until(lease, (at) => at > from + 4_000);
    expect(await stage.redis.hget(record, 'written')).toBe('4');
    await stage.redis.config('SET', 'maxmemory', '0');
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'one two three' });
  });

  test('reads the source no faster than the command, and closes it at the end', async () => {
    await using stage = await setClientStage();
    await stage.startHost();
    const fleet = await stage.connect();
    const session = await fleet.session('s');
    let asked = 0;
    let letGo = false;
    async function* source() {
      try {
        for (;;) {
          asked += 1;
          yield new Uint8Array(1 << 20);
        }
      } finally {
        letGo = true;
      }
    }
    const command = await session.submit('echo up; sleep 60', { stdin: source(), timeoutMs: 60_000 });
    for await (const { text } of command.output()) if (text === 'up\n') break;
    await until(
      () => asked,
      (count) => count >= 4,
    );
    await session.info();
    // The limit covers 4 MiB unread, the chunk that waits for room, and what the pipe has taken.
    expect(asked).toBeLessThanOrEqual(7);
    await command.cancel();
    await command.stdinSent();
    expect(letGo).toBe(true);
  });

  test('stops its command at once when its source throws instead of waiting', async () => {
    await using stage = await setClientStage();
    await stage.startHost();
    const fleet = await stage.connect();
    const session = await fleet.session('s');
    const locked = new ReadableStream<Uint8Array>();
    locked.getReader();
    function* broken() {
      yield 'some ';
      throw new Error('the disk is gone');
    }
    for (const [stdin, bytes] of [
      [locked, 0],
      [broken(), 5],
    ] as const) {
      const command = await session.submit('cat; sleep 60', { stdin, timeoutMs: 60_000 });
      await command.stdinSent();
      const { error } = await command.result();
      expect(error).toMatchObject({ code: 'STDIN_INCOMPLETE', context: { bytes } });
      expect(error?.message).toContain('its source failed where it was streamed from');
    }
  });

  test('does not read the source if the session is closed', async () => {
    await using stage = await setClientStage();
    const fleet = await stage.connect();
    const session = await fleet.session('s');
    await session.close();
    let asked = false;
    const source = {
      // biome-ignore lint/correctness/useYield: it is never to be asked.
      async *[Symbol.asyncIterator]() {
        asked = true;
      },
    };
    await expect(session.submit('cat', { stdin: source })).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
    expect(asked).toBe(false);
  });
});
