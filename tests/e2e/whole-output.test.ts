import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sessionKeys } from '@shellfleet/protocol';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: a foreground exec prints all output of a command, whatever its size, or does not exit with the command's
// code. A reader that stalls or dies has no effect on the command.

const MIB = 2 ** 20;
// Smallest log that docs/operations.md recommends. It keeps unread output while a new worker does not yet know how much
// was read.
const LOG_BYTES = 20 * MIB;
/** Size of the output: more than the stream, the overflow log and all buffers hold together. */
const BYTES = 34 * MIB;
const SPEC = { output: { streamBytes: MIB } };

let stack: TestFleet;
let cli: FleetCli;
beforeAll(async () => {
  stack = await startFleet({
    // The stall is longer than a request waits for a host that was killed.
    env: { SHELLFLEET_READER_STALL: '9s', SHELLFLEET_OVERFLOW_LOG_COMMAND_BYTES: String(LOG_BYTES) },
  });
  cli = new FleetCli(stack);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('hex');
/** Prints random bytes, and their checksum on stderr first. */
const PRINT_RANDOM = `head -c ${BYTES} /dev/urandom > f; md5sum < f | cut -c 1-32 >&2; cat f`;

/** Returns the Result of the session's last command, when it has ended. */
async function lastResult(sessionId: string) {
  const session = await stack.fleet.session(sessionId);
  for await (const event of session.events()) if (event.type === 'command.completed') return event.data;
  return undefined;
}

describe('output for an attached reader', () => {
  test('reaches exec whole, beyond stream and log, while Redis stays small', async () => {
    await stack.fleet.session('whole', SPEC);
    const { exitCode, stdout, stderr } = await cli.run(['exec', 'whole', '--', PRINT_RANDOM]);
    expect({ exitCode, md5: `${md5(stdout)}\n` }).toEqual({ exitCode: 0, md5: stderr });
    await using redis = Object.assign(new Redis(stack.redisUrl), {
      [Symbol.asyncDispose]: async function (this: Redis) {
        await this.quit();
      },
    });
    const { stream } = sessionKeys(stack.keyspace as never, 'default' as never, 'whole' as never);
    expect(await redis.memory('USAGE', stream)).toBeLessThan(4 * MIB);
  });

  test('reaches an SDK reader whole; a command that waits for the reader is not silent', async () => {
    const session = await stack.fleet.session('whole', SPEC);
    const script = `seq 1 9999999 | head -c ${BYTES}`;
    const command = await session.submit(script, { attachReader: true, noOutputTimeoutMs: 2_500 });
    let text = '';
    for await (const chunk of command.output()) {
      expect(chunk.omittedBytes).toBeUndefined();
      const before = text.length;
      text += chunk.text;
      // The pause is longer than the command may be silent, and shorter than its reader may stall.
      if (before < 2 * MIB && text.length >= 2 * MIB) await delay(3_500);
    }
    let expected = '';
    for (let number = 1; expected.length < BYTES; number += 1) expected += `${number}\n`;
    expect(text === expected.slice(0, BYTES)).toBe(true);
    expect(await command.result()).toMatchObject({ outcome: 'success', totals: { stdoutBytes: BYTES } });
  });

  test('loses no byte when the worker of a waiting command is killed', async () => {
    const session = await stack.fleet.session('whole', SPEC);
    const exec = cli.start(['exec', 'whole', '--', PRINT_RANDOM]);
    exec.child.stdout?.pause();
    const log = async () => {
      const { runningCommandId = '' } = await session.info();
      const paths = await readdir(stack.stateDirectory, { recursive: true, withFileTypes: true });
      const files = paths.filter(({ parentPath }) => parentPath.endsWith(runningCommandId.split('.').at(-1) || '?'));
      const sizes = await Promise.all(
        files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
      );
      return sizes.reduce((sum, size) => sum + size, 0);
    };
    // The command is throttled now: more output would arrive only after the stall, when the log may drop unread output.
    await until(log, (bytes) => bytes > 5 * MIB);
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    exec.child.stdout?.resume();
    const { exitCode, stdout, stderr } = await exec.end;
    expect({ exitCode, md5: `${md5(stdout)}\n` }).toEqual({ exitCode: 0, md5: stderr });
  });

  // Both tests wait for the limit of a stall, so they run at the same time.
  test.concurrent('lacks bytes after a long stall; the command continues, and exec exits with 125', async () => {
    await stack.fleet.session('stalled', SPEC);
    const exec = cli.start(['exec', 'stalled', '--', PRINT_RANDOM]);
    exec.child.stdout?.pause();
    expect(await lastResult('stalled')).toMatchObject({ outcome: 'success', totals: { stdoutBytes: BYTES } });
    exec.child.stdout?.resume();
    const { exitCode, stdout, stderr } = await exec.end;
    const missing = BYTES - stdout.byteLength;
    expect(missing).toBeGreaterThan(MIB);
    expect(exitCode).toBe(125);
    expect(stderr).toContain(`${missing} bytes of its output did not come, so the exit code is not that of stalled.`);
  });

  test.concurrent('does not hold up the command when the reader is killed', async () => {
    await stack.fleet.session('killed', SPEC);
    const exec = cli.start(['exec', 'killed', '--', PRINT_RANDOM]);
    await until(
      () => exec.output().stdout.byteLength,
      (bytes) => bytes > 2 * MIB,
    );
    exec.child.kill('SIGKILL');
    expect(await lastResult('killed')).toMatchObject({ outcome: 'success', totals: { stdoutBytes: BYTES } });
  });
});
