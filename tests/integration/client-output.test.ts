import type { Command, OutputChunk } from '@shellfleet/client';
import { sessionKeys } from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setClientStage } from '../support/client-stage.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';

let own: OwnRedis;
beforeAll(async () => {
  own = await startOwnRedis();
});
afterAll(() => own[Symbol.asyncDispose]());

const bytesOf = (chunks: readonly OutputChunk[], stream: 'stdout' | 'stderr') =>
  Buffer.concat(chunks.filter((chunk) => chunk.stream === stream).map(({ data }) => data));
const readAll = (command: Command, after?: string) =>
  Array.fromAsync(command.output(after === undefined ? {} : { after }));

/** Prints to both streams, in several chunks that split characters and contain every kind of byte. */
const MIXED = `for i in 1 2 3 4 5 6; do printf '\\342\\202'; sleep 0.02; printf '\\254%s\\0\\377' $i; printf 'e%s' $i >&2; sleep 0.02; done`;

describe('output of a command', () => {
  // READ-1
  test('is the same for a reader that resumes at any id', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const command = await session.submit(MIXED);
    const stayed = await readAll(command);
    expect(bytesOf(stayed, 'stdout').toString('latin1')).toBe(
      [1, 2, 3, 4, 5, 6].map((i) => `\u00e2\u0082\u00ac${i}\0\u00ff`).join(''),
    );
    expect(bytesOf(stayed, 'stderr').toString()).toBe('e1e2e3e4e5e6');
    const other = await (await stage.connect()).command(command.id);
    for (const [index, { id }] of stayed.entries()) {
      const rest = await readAll(other, id);
      expect(rest.map(({ id, data, omittedBytes }) => ({ id, data: Buffer.from(data), omittedBytes }))).toEqual(
        stayed.slice(index + 1).map(({ id, data, omittedBytes }) => ({ id, data: Buffer.from(data), omittedBytes })),
      );
    }
  });

  test('is decoded across chunk boundaries, separately for each stream', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const chunks = await readAll(await session.submit(MIXED));
    const textOf = (stream: string) =>
      chunks
        .filter((chunk) => chunk.stream === stream)
        .map(({ text }) => text)
        .join('');
    expect(textOf('stdout')).toBe([1, 2, 3, 4, 5, 6].map((i) => `€${i}\0\ufffd`).join(''));
    expect(textOf('stderr')).toBe('e1e2e3e4e5e6');
  });

  test('is complete for any number of readers in any process', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const fleet = await stage.connect();
    const other = await stage.connect();
    const command = await (await fleet.session('s')).submit('for i in 1 2 3; do echo $i; sleep 0.05; done');
    const readers = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => readAll(await (index % 2 ? fleet : other).command(command.id))),
    );
    for (const chunks of readers) expect(bytesOf(chunks, 'stdout').toString()).toBe('1\n2\n3\n');
  });

  test('arrives while the command runs, and ends with the command', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const command = await session.submit('echo first; exec sleep 60');
    const output = command.output();
    expect((await output.next()).value?.text).toBe('first\n');
    await command.cancel();
    expect((await output.next()).done).toBe(true);
  });

  test('is empty for a command that never ran', async () => {
    await using stage = await setClientStage(own);
    const session = await (await stage.connect()).session('s');
    const command = await session.submit('echo never');
    const reading = readAll(command);
    await command.cancel();
    expect(await reading).toEqual([]);
  });

  // Invariant 7
  test('counts trimmed bytes in the next chunk, or at the end', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const command = await session.submit('echo abcd; sleep 0.05; echo ef; sleep 0.05; echo');
    const chunks = await readAll(command);
    expect(chunks).toHaveLength(3);
    const { stream } = sessionKeys(stage.keyspace, 'default', 's');
    await stage.redis.xtrim(stream, 'MINID', chunks[1]?.id ?? '');
    const trimmed = await readAll(command);
    expect(trimmed.map(({ text, omittedBytes }) => ({ text, omittedBytes }))).toEqual([
      { text: 'ef\n', omittedBytes: 5 },
      { text: '\n', omittedBytes: undefined },
    ]);
    await stage.redis.xdel(stream, chunks[1]?.id ?? '', chunks[2]?.id ?? '');
    const gone = await readAll(command);
    expect(gone.map(({ text, omittedBytes }) => ({ text, omittedBytes }))).toEqual([{ text: '', omittedBytes: 9 }]);
  });

  // READ-2, invariant 8
  test('is not read from Redis for a reader that does not ask', async () => {
    await using stage = await setClientStage(own);
    const host = await stage.startHost();
    // The stream keeps the whole output, which is larger than a stream is by default.
    const session = await (await stage.connect()).session('s', { output: { streamBytes: 16_000_000 } });
    const command = await session.submit('head -c 10000000 /dev/zero');
    await command.result();
    // The host reads streams, too.
    await host.leave();
    const pagesRead = async () =>
      Number(/cmdstat_xrange:calls=(\d+)/.exec(await stage.redis.info('commandstats'))?.[1] ?? 0);
    await stage.redis.config('RESETSTAT');
    const output = command.output();
    const first = await output.next();
    expect(await pagesRead()).toBe(1);
    // More notices of new events do not make a reader read while it has not taken its last page of events.
    const { feed } = sessionKeys(stage.keyspace, 'default', 's');
    for (let hint = 0; hint < 20; hint++) await stage.redis.publish(feed, '0-1');
    expect(await pagesRead()).toBe(1);
    let total = first.value?.data.byteLength ?? 0;
    for await (const { data } of output) total += data.byteLength;
    expect(total).toBe(10_000_000);
    // The number of pages depends on the size of the chunks.
    expect(await pagesRead()).toBeGreaterThan(1);
  });

  test('reaches `onOutput` completely before the result resolves', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const chunks: OutputChunk[] = [];
    const result = await session.run('echo a; sleep 0.05; echo b', { onOutput: (chunk) => chunks.push(chunk) });
    expect(bytesOf(chunks, 'stdout').toString()).toBe(result.stdout);
  });

  test('arrives late, but completely, when hints are lost', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const command = await session.submit('sleep 0.3; echo late');
    const reading = readAll(command);
    const clients = ((await stage.redis.client('LIST')) as string).split('\n');
    const deaf = clients.filter((line) => /name=shellfleet-feeds/.test(line));
    for (const line of deaf) await stage.redis.client('KILL', 'ID', /id=(\d+)/.exec(line)?.[1] ?? '');
    expect(bytesOf(await reading, 'stdout').toString()).toBe('late\n');
    expect((await command.result()).stdout).toBe('late\n');
  });
});

describe('events of a session', () => {
  test('begin with its generation, resume at an id, and end with the generation', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const following = Array.fromAsync(session.events());
    await session.run('echo hi');
    await session.close();
    const events = await following;
    expect(events.map(({ type }) => type)).toEqual([
      'command.accepted',
      'session.queued',
      'session.opened',
      'command.started',
      'command.output',
      'command.completed',
      'session.closed',
    ]);
    for (const event of events) {
      // The type of the event determines the type of its data.
      if (event.type === 'session.opened') expect(event.data.epoch).toBe(1);
      else if (event.type === 'command.started') expect(event.data.hostId).toBe('host-1');
      else if (event.type === 'command.output') expect(event.data.text).toBe('hi\n');
      else if (event.type === 'command.completed') expect(event.data.commandId).toBe(event.commandId);
      else if (event.type === 'command.accepted') expect(event.data.kind).toBe('command');
      else expect(event).toMatchObject({ data: {} });
    }
    const rest = await Array.fromAsync(session.events({ after: events[3]?.id ?? '' }));
    expect(rest).toEqual(events.slice(4));
  });
});

describe('a Result', () => {
  test('is read from the session if it is too large for the hint', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const session = await (await stage.connect()).session('s');
    const { stdout } = await session.run('head -c 200000 /dev/zero | tr "\\0" x');
    expect(stdout).toBe('x'.repeat(200_000));
  });
});

describe('the connection to Redis', () => {
  test('is refused for a malformed URL and for a Redis that evicts keys', async () => {
    await using other = await startOwnRedis('--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru');
    await expect(connectRedis(other.url, 'producer', 'test')).rejects.toMatchObject({
      code: 'REDIS_UNSUITABLE',
      context: { setting: 'maxmemory-policy' },
    });
  });
});
