import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { PreparedProcesses } from './prepared-processes.ts';
import type { ToolProcessEnd } from './tool-process.ts';

const module = fileURLToPath(new URL('../../../../tests/fixtures/tools/everyday.ts', import.meta.url));
const MIB = 1_048_576;
const limits = { memoryBytes: 512 * MIB, dataBytes: 512 * MIB };
const EXITS_MS = 20_000;

let processes: PreparedProcesses;
afterEach(() => processes.close());

function create(slots: number): PreparedProcesses {
  processes = new PreparedProcesses({
    ...{ slots, env: { PATH: process.env.PATH ?? '' }, mark: 'test:prepared:' },
    ...{ preload: [], onDeath() {} },
  });
  processes.prepare(limits);
  return processes;
}

function call(exported: string, args: unknown, of = limits): Promise<ToolProcessEnd> {
  return processes.run(of, {
    request: { type: 'call', module, exported, name: exported, outputBytes: MIB },
    args: JSON.stringify(args),
    timeoutMs: 60_000,
    outputBytes: MIB,
    signal: new AbortController().signal,
  });
}

const output = (end: ToolProcessEnd) => (end.type === 'reported' ? JSON.parse(end.body.toString()) : end);
const isGone = (pid: number | undefined) => () => !existsSync(`/proc/${pid}`);

test('PREPARED-1, PREPARED-3: each call has another process, and one waits for each slot', async () => {
  create(1);
  const [first] = processes.pids;
  processes.prepare(limits);
  expect(processes.pids).toEqual([first]);
  const calling = call('environment', {});
  const [second] = processes.pids;
  expect(processes.pids).toEqual([expect.any(Number)]);
  expect(second).not.toBe(first);
  const environment = output(await calling);
  expect(environment).toEqual({
    PATH: process.env.PATH,
    SHELLFLEET_TOOL_CALL: expect.stringMatching(/^test:prepared:[0-9a-f-]{36}$/),
  });
  expect(processes.pids).toEqual([second]);
  expect(output(await call('environment', {}))).not.toEqual(environment);
  expect(processes.pids).toEqual([expect.any(Number)]);
  expect(processes.pids).not.toEqual([second]);
});

test('PREPARED-3: no more wait than there are processors', async () => {
  const most = availableParallelism();
  create(most + 1);
  for (let started = 0; started < most + 1; started += 1) processes.prepare(limits);
  expect(processes.pids).toHaveLength(most);
});

test('PREPARED-4: a process that is killed while it waits costs no call', async () => {
  create(1);
  process.kill(processes.pids[0] as number, 'SIGKILL');
  // Its end is not known here yet.
  expect(output(await call('add', { a: 1, b: 2 }))).toEqual({ sum: 3 });
});

test('PREPARED-4: a process that died before costs no call either', async () => {
  create(1);
  process.kill(processes.pids[0] as number, 'SIGKILL');
  await expect.poll(() => processes.pids, { timeout: EXITS_MS, interval: 1 }).toEqual([]);
  expect(output(await call('add', { a: 1, b: 2 }))).toEqual({ sum: 3 });
});

test('a call with other limits has a process with those, and the one that waits makes room', async () => {
  create(1);
  const [first] = processes.pids;
  expect(output(await call('add', { a: 2, b: 2 }, { ...limits, memoryBytes: 256 * MIB }))).toEqual({ sum: 4 });
  await expect.poll(isGone(first), { timeout: EXITS_MS }).toBe(true);
});

test('a process that cannot be started ends nothing but its own call', async () => {
  const onDeath = vi.fn();
  // Node refuses to start a process with such a variable.
  processes = new PreparedProcesses({ slots: 1, env: { A: '\0' }, mark: 'test:prepared:', preload: [], onDeath });
  processes.prepare(limits);
  expect(onDeath.mock.calls).toEqual([[{ pid: undefined, exitCode: 127, signal: null }]]);
  await expect(call('environment', {})).rejects.toThrow();
});

test('all but one of the processes that wait end after a minute', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    create(2).prepare(limits);
    const [first, second] = processes.pids;
    expect(processes.pids).toHaveLength(Math.min(2, availableParallelism()));
    vi.advanceTimersByTime(60_000);
    expect(processes.pids).toEqual([second ?? first]);
    vi.advanceTimersByTime(60_000);
    processes.prepare(limits);
    vi.advanceTimersByTime(60_000);
    expect(processes.pids).toEqual([second ?? first]);
  } finally {
    vi.useRealTimers();
  }
});

test('processes that wait end with their host', async () => {
  create(1);
  const [first] = processes.pids;
  processes.close();
  await expect.poll(isGone(first), { timeout: EXITS_MS }).toBe(true);
  processes.prepare(limits);
  expect(processes.pids).toEqual([]);
});
