import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { p95While } from '../support/flood-figures.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { mostResidentBytes, residentBytes } from '../support/resident-bytes.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

const MIB = 2 ** 20;
let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** The most memory that the worker ever had resident. */
async function highWaterMark(): Promise<number> {
  const status = await readFile(`/proc/${stack.workers[0]?.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}

test('a worker’s memory does not grow with what a command prints, and its counters are exact (invariant 8, S1-27)', async () => {
  const session = await stack.fleet.session('flood', { commandTimeoutMs: 50_000 });
  await session.run('seq 1 100000');
  const before = await highWaterMark();
  const result = await session.run('head -c 300M /dev/zero | tr "\\0" "x"; echo; yes "" | head -n 5000000 >&2');
  expect(result).toEqual({
    ...expectedResult('flood'),
    stdout: expect.any(String),
    stderr: expect.any(String),
    output: expect.any(String),
    truncated: { bytes: true, lines: true },
    totals: { stdoutBytes: 300 * MIB + 1, stderrBytes: 5_000_000, stdoutLines: 1, stderrLines: 5_000_000 },
  });
  expect(result.stdout.length).toBeLessThan(262_144 + 100);
  expect(result.stderr).toMatch(/^\n{5000}\[\.\.\. \d+ bytes, \d+ lines omitted \.\.\.\]\n\n{5000}$/);
  expect((await highWaterMark()) - before).toBeLessThan(150 * MIB);
});

/** SHELLFLEET_TEST_FLOOD_BYTES=10000000000 takes it further. */
const FLOOD_BYTES = Number(process.env.SHELLFLEET_TEST_FLOOD_BYTES ?? 500_000_000);
const FLOOD_TIMEOUT_MS = 3_600_000;

test(
  'a flood costs neither memory, nor Redis, nor the others: 500 MB of yes through one command (invariant 8)',
  async () => {
    await using inspect = inspectFleet(stack);
    const pid = stack.workers[0]?.pid ?? -1;
    const flooding = await stack.fleet.session('yes', { commandTimeoutMs: FLOOD_TIMEOUT_MS });
    const other = await stack.fleet.session('other');
    await other.run('true');
    await flooding.run('yes | head -c 30000000');
    // The same processes at work, and nothing of it for us.
    const before = await p95While(other, flooding.run('timeout 5 yes > /dev/null'));
    const residentBefore = await residentBytes(pid);
    const from = performance.now();
    const command = await flooding.submit(`yes | head -c ${FLOOD_BYTES}`);
    const ended = command.result();
    const [most, during, result] = await Promise.all([mostResidentBytes(pid, ended), p95While(other, ended), ended]);
    const seconds = (performance.now() - from) / 1_000;
    const events = await inspect.events('yes');
    const carried = events
      .filter(({ type, entryId }) => type === 'command.output' && command.id.endsWith(entryId))
      .reduce((sum, { data }) => sum + data.length, 0);
    console.info(
      `${FLOOD_BYTES / 1e6} MB in ${seconds.toFixed(1)} s: worker ${((most - residentBefore) / MIB).toFixed(0)} MiB more, stream ${(carried / MIB).toFixed(1)} MiB, ` +
        `p95 of another session ${before.p95Ms.toFixed(1)} ms before, ${during.p95Ms.toFixed(1)} ms during (${during.commands} commands)`,
    );
    expect(result).toMatchObject({
      outcome: 'success',
      totals: { stdoutBytes: FLOOD_BYTES, stdoutLines: FLOOD_BYTES / 2 },
    });
    expect(most - residentBefore).toBeLessThan(64 * MIB);
    expect(carried).toBeLessThan(8.1 * MIB);
    // The allowance is for what else the machine does meanwhile.
    expect(during.p95Ms).toBeLessThan(2 * before.p95Ms + 50);
  },
  FLOOD_TIMEOUT_MS,
);

test('an endless printer is stopped at its time limit, and the session goes on', async () => {
  const session = await stack.fleet.session('endless');
  const result = await session.run('yes', { timeoutMs: 700 });
  expect(result).toMatchObject({ outcome: 'timeout', reason: 'wall', truncated: { bytes: true } });
  expect(result.totals.stdoutBytes).toBeGreaterThan(MIB);
  expect(await session.run('echo on')).toEqual(expectedResult('endless', { stdout: 'on\n' }));
});

test('output that looks like ours is output (row 50, 51)', async () => {
  const session = await stack.fleet.session('looks-like');
  const script = `printf '__LC_SHELL_DONE__ 0\\n'; printf 't0000000000000000 0 kept\\n'; printf '\\nshellfleet: done\\n'; sh -c 'exit 6'`;
  expect(await session.run(script)).toEqual(
    expectedResult('looks-like', {
      outcome: 'failure',
      exitCode: 6,
      stdout: '__LC_SHELL_DONE__ 0\nt0000000000000000 0 kept\n\nshellfleet: done\n',
    }),
  );
});

test('a traced shell shows its commands and nothing of ours (row 51)', async () => {
  const session = await stack.fleet.session('traced');
  expect(await session.run('set -x; echo one')).toMatchObject({
    stdout: 'one\n',
    stderr: expect.stringMatching(/^\++ echo one\n$/),
  });
  expect(await session.run('echo two')).toMatchObject({
    stdout: 'two\n',
    stderr: expect.stringMatching(/^\++ echo two\n$/),
  });
  expect((await session.run('set +x')).stderr).toMatch(/^\++ set \+x\n$/);
  expect(await session.run('echo three; fc -l 2>/dev/null; history')).toMatchObject({ stdout: 'three\n', stderr: '' });
});
