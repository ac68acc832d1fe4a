import { createHash, randomBytes } from 'node:crypto';
import type { Command } from '@shellfleet/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: a command whose worker dies goes on until its ring buffer is full, then waits. Adoption loses no output of
// any size, also when the dead worker left half a frame in either direction.

const BYTES = 30_000_000;
const SCRIPT = `echo ran >> /tmp/runs; seq 1 10000000 | head -c ${BYTES}`;
const WHOLE = { streamBytes: 64 << 20 };

function expectedHash(): string {
  const hash = createHash('md5');
  let left = BYTES;
  for (let from = 1; left > 0; from += 10_000) {
    const lines = `${Array.from({ length: 10_000 }, (_, index) => from + index).join('\n')}\n`.slice(0, left);
    hash.update(lines);
    left -= lines.length;
  }
  return hash.digest('hex');
}

/** Reads the output of a command while it runs. */
function follow(command: Command) {
  const hash = createHash('md5');
  const seen = { bytes: 0 };
  const ended = (async () => {
    for await (const { data, omittedBytes } of command.output()) {
      expect(omittedBytes).toBe(undefined);
      hash.update(data);
      seen.bytes += data.byteLength;
    }
    return { bytes: seen.bytes, md5: hash.digest('hex') };
  })();
  return { seen, ended };
}

describe.each(['socket', 'attach'] as const)('30 MB of output over %s', (transport) => {
  let stack: TestFleet;
  let worker: TestWorker;
  let inspect: FleetInspector;

  beforeEach(async () => {
    ({ stack, worker, inspect } = await startInspectedFleet({ transport }));
  });
  afterEach(() => endInspectedFleet(stack, inspect));

  test('wait in a full ring buffer without a worker, and arrive once after adoption', async () => {
    const session = await stack.fleet.session('big', { output: WHOLE });
    await session.run('true');
    const command = await session.submit(SCRIPT, { timeoutMs: 60_000 });
    const { seen, ended } = follow(command);
    await until(
      () => seen.bytes,
      (bytes) => bytes > 3_000_000,
    );
    await worker.kill();
    expect(seen.bytes).toBeLessThan(BYTES);
    await until(() => isStuck(inspect, 'big'), Boolean);
    const atDeath = seen.bytes;
    await worker.start();
    expect(await ended).toEqual({ bytes: BYTES, md5: expectedHash() });
    const result = await command.result();
    expect(result).toMatchObject({
      outcome: 'success',
      totals: { stdoutBytes: BYTES },
      truncated: { bytes: false, lines: true },
    });
    expect((await session.run('cat /tmp/runs')).stdout).toBe('ran\n');
    expect(await inspect.broken('big', [command.id])).toEqual([]);
    console.info(`over ${transport}: ${atDeath} of ${BYTES} bytes had come when the worker died`);
  });

  test('arrive once when their worker is killed repeatedly while frames are in flight', async () => {
    const session = await stack.fleet.session('again', { output: WHOLE });
    await session.run('true');
    const command = await session.submit(SCRIPT, { timeoutMs: 60_000 });
    const { seen, ended } = follow(command);
    for (let kill = 1; kill <= 5; kill += 1) {
      await until(
        () => seen.bytes,
        (bytes) => bytes > kill * 4_000_000,
      );
      await worker.kill();
      await worker.start();
    }
    expect(await ended).toEqual({ bytes: BYTES, md5: expectedHash() });
    expect(await command.result()).toMatchObject({ outcome: 'success', totals: { stdoutBytes: BYTES } });
    expect((await session.run('cat /tmp/runs')).stdout).toBe('ran\n');
    expect(await inspect.broken('again', [command.id])).toEqual([]);
  });

  test('are counted even over the stream’s budget, and the Result is whole after adoption', async () => {
    const session = await stack.fleet.session('over', { output: { streamBytes: 1 << 20, maxBytes: 10_000 } });
    const command = await session.submit(SCRIPT, { timeoutMs: 60_000 });
    await inspect.untilOutput('over');
    await worker.kill();
    await worker.start();
    const result = await command.result();
    expect(result).toMatchObject({
      outcome: 'success',
      totals: { stdoutBytes: BYTES },
      truncated: { bytes: true, lines: true },
    });
    expect(result.stdout.startsWith('1\n2\n3\n')).toBe(true);
    expect(result.stdout.slice(-4_000)).toBe(await tailOf(session));
    let carried = 0;
    let omitted = 0;
    for await (const chunk of command.output()) {
      carried += chunk.data.byteLength;
      omitted += chunk.omittedBytes ?? 0;
    }
    expect(carried + omitted).toBe(BYTES);
    // The stream may lack the bytes that the redactor kept pending at the limit.
    expect(carried).toBeLessThanOrEqual(1 << 20);
    expect(carried).toBeGreaterThan((1 << 20) - 100);
    expect(await inspect.broken('over', [command.id])).toEqual([]);
  });

  test('do not double stdin of which a dead worker had sent a part', async () => {
    const session = await stack.fleet.session('halves');
    await session.run('true');
    for (let round = 1; round <= 2; round += 1) {
      const stdin = randomBytes(1 << 20);
      const command = await session.submit('echo ran >> /tmp/runs; md5sum | cut -c1-32', { stdin });
      await until(
        () => inspect.events('halves'),
        (events) => events.some(({ type, entryId }) => type === 'command.started' && command.id.endsWith(entryId)),
      );
      await worker.kill();
      await worker.start();
      expect(await command.result()).toMatchObject({
        outcome: 'success',
        stdout: `${createHash('md5').update(stdin).digest('hex')}\n`,
      });
      expect((await session.run('wc -l < /tmp/runs')).stdout).toBe(`${round}\n`);
    }
    expect(await inspect.broken('halves')).toEqual([]);
  });
});

async function tailOf(session: { run(script: string): Promise<{ stdout: string }> }): Promise<string> {
  return (await session.run(`seq 1 10000000 | head -c ${BYTES} | tail -c 4000`)).stdout;
}

/** Returns whether the printing process waits for room in its pipe, because the keeper has stopped reading. */
async function isStuck(inspect: FleetInspector, sessionId: string): Promise<boolean> {
  const [container] = await inspect.containers(sessionId);
  const { Processes } = await inspect.docker.getContainer(container?.id ?? '').top({ ps_args: '-o pid,wchan:20,comm' });
  const waits = (Processes as string[][]).filter(([, , name]) => name === 'head').map(([, where]) => where);
  return waits.length === 1 && (waits[0] ?? '').includes('pipe_w');
}
