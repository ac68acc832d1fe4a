import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command, LogChunk, LogOptions } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { md5 } from '../support/md5.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: the whole redacted output of a command can be read by offset while its host keeps it. Missing parts are
// reported.

const MIB = 2 ** 20;
const BYTES = 5 * MIB;
const SCRIPT = `seq 1 9999999 | head -c ${BYTES}; echo "end $TOKEN" >&2`;
const SPEC = { output: { streamBytes: MIB, maxBytes: 10_000 }, secrets: { TOKEN: 'correct-horse-battery' } };
const ERR = 'end [REDACTED_SECRET]\n';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ env: { SHELLFLEET_OVERFLOW_LOG_COMMAND_BYTES: String(3 * MIB) } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

function expectedBytes(bytes: number): Buffer {
  let text = '';
  for (let number = 1; text.length < bytes; number += 1) text += `${number}\n`;
  return Buffer.from(text.slice(0, bytes));
}

async function read(command: Command, options: LogOptions = {}) {
  const chunks: LogChunk[] = [];
  for await (const chunk of command.log(options)) chunks.push(chunk);
  const data = Buffer.concat(chunks.map((chunk) => chunk.data));
  return { chunks, data, omitted: chunks.reduce((sum, { omittedBytes = 0 }) => sum + omittedBytes, 0) };
}

describe('the full log of a command', () => {
  test('is read from the host beyond the stream’s budget, also after its worker was killed', async () => {
    const session = await stack.fleet.session('logged', SPEC);
    const script = `seq 1 9999999 | head -c ${3 * MIB}; echo "end $TOKEN" >&2`;
    const command = await session.submit(script);
    const result = await command.result();
    expect(result).toMatchObject({ outcome: 'success', redactions: { secret: 1 }, truncated: { bytes: true } });
    const whole = expectedBytes(3 * MIB);
    const stdout = await read(command, { stream: 'stdout' });
    expect([md5(stdout.data), stdout.omitted]).toEqual([md5(whole), 0]);
    expect((await read(command, { stream: 'stderr' })).data.toString()).toBe(ERR);
    const both = await read(command);
    expect([both.data.length, both.omitted]).toEqual([whole.length + ERR.length, 0]);
    await stack.workers[0]?.kill();
    await expect(read(command)).rejects.toMatchObject({ code: 'HOST_UNREACHABLE', retryable: true });
    await stack.workers[0]?.start();
    for (const [offset, length] of [
      [MIB - 10, 20],
      [2 * MIB + 77, 300_000],
      [3 * MIB - 5, 100],
    ] as const) {
      const { data, chunks } = await read(command, { stream: 'stdout', offset, length });
      expect(data.equals(whole.subarray(offset, offset + length))).toBe(true);
      expect(chunks[0]?.offset).toBe(offset);
    }
    const cli = await new FleetCli(stack).run([
      'logs',
      command.id,
      '--stream',
      'stdout',
      '--offset',
      '2m',
      '--length',
      '64k',
    ]);
    expect(cli.stdout.equals(whole.subarray(2 * MIB, 2 * MIB + 65_536))).toBe(true);
  });

  test('keeps its beginning and end over its quota, and counts the bytes between', async () => {
    const session = await stack.fleet.session('quota', SPEC);
    const command = await session.submit(SCRIPT);
    await command.result();
    const { data, omitted, chunks } = await read(command, { stream: 'stdout' });
    const whole = expectedBytes(BYTES);
    expect(data.length + omitted).toBe(BYTES);
    expect(omitted).toBeGreaterThan(MIB / 2);
    for (const chunk of chunks)
      expect(whole.subarray(chunk.offset, chunk.offset + chunk.data.length).equals(chunk.data)).toBe(true);
    expect(chunks.at(-1)?.offset).toBe(BYTES - (chunks.at(-1)?.data.length ?? 0));
  });

  test('is LOG_EXPIRED with its size when its host has removed it', async () => {
    const session = await stack.fleet.session('removed', SPEC);
    const command = await session.submit(SCRIPT);
    await command.result();
    const entry = command.id.slice(command.id.lastIndexOf('.') + 1);
    const directories = (await readdir(stack.stateDirectory, { recursive: true })).filter((path) =>
      path.endsWith(entry),
    );
    expect(directories).toHaveLength(1);
    await rm(join(stack.stateDirectory, directories[0] ?? ''), { recursive: true });
    const { data, omitted } = await read(command, { stream: 'stdout' });
    expect(data.length + omitted).toBe(BYTES);
    const cli = await new FleetCli(stack).run(['logs', command.id]);
    expect(cli.stderr).toContain(`${omitted} bytes of stdout are missing here.`);
  });

  test('can be read while the command runs, and followed to the end', async () => {
    const session = await stack.fleet.session('running', { ...SPEC, commandTimeoutMs: 30_000 });
    const command = await session.submit(`seq 1 9999999 | head -c ${2 * MIB}; mkfifo /tmp/go; read go < /tmp/go`);
    const untilStored = async () => {
      for (;;) {
        const { data } = await read(command, { stream: 'stdout' });
        if (data.length >= 2 * MIB - 70_000) return data;
      }
    };
    const soFar = await untilStored();
    expect(
      expectedBytes(2 * MIB)
        .subarray(0, soFar.length)
        .equals(soFar),
    ).toBe(true);
    const tail = new FleetCli(stack).start(['logs', '-f', '--tail', '1', command.id]);
    await until(
      () => tail.output().stdout.byteLength,
      (bytes) => bytes > 0,
    );
    const followed = read(command, { follow: true });
    await command.cancel();
    const whole = expectedBytes(2 * MIB);
    expect(md5((await followed).data)).toBe(md5(whole));
    // The tail begins with the last line of the output stored at that time, and all output stored later follows.
    const { stdout: shown } = await tail.end;
    expect(whole.subarray(whole.length - shown.length).equals(shown)).toBe(true);
  });
});
