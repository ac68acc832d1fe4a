import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test, vi } from 'vitest';
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

describe('prepared processes', () => {
  test('serve one call each, and wait one per slot (PREPARED-1, PREPARED-3)', async () => {
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

  test('wait in at most the number of processors (PREPARED-3)', async () => {
    const most = availableParallelism();
    create(most + 1);
    for (let started = 0; started < most + 1; started += 1) processes.prepare(limits);
    expect(processes.pids).toHaveLength(most);
  });

  test('cost no call when killed while waiting (PREPARED-4)', async () => {
    create(1);
    process.kill(processes.pids[0] as number, 'SIGKILL');
    // The death of the waiting process is not reported yet.
    expect(output(await call('add', { a: 1, b: 2 }))).toEqual({ sum: 3 });
  });

  test('cost no call when they died before the call (PREPARED-4)', async () => {
    create(1);
    process.kill(processes.pids[0] as number, 'SIGKILL');
    await expect.poll(() => processes.pids, { timeout: EXITS_MS, interval: 1 }).toEqual([]);
    expect(output(await call('add', { a: 1, b: 2 }))).toEqual({ sum: 3 });
  });

  test('make room for a call with other limits', async () => {
    create(1);
    const [first] = processes.pids;
    expect(output(await call('add', { a: 2, b: 2 }, { ...limits, memoryBytes: 256 * MIB }))).toEqual({ sum: 4 });
    await expect.poll(isGone(first), { timeout: EXITS_MS }).toBe(true);
  });

  test('fail only one call when a process cannot be started', async () => {
    const onDeath = vi.fn();
    // Node refuses to start a process with such a variable.
    processes = new PreparedProcesses({ slots: 1, env: { A: '\0' }, mark: 'test:prepared:', preload: [], onDeath });
    processes.prepare(limits);
    expect(onDeath.mock.calls).toEqual([[{ pid: undefined, exitCode: 127, signal: null }]]);
    await expect(call('environment', {})).rejects.toThrow();
  });

  test('end after a minute of waiting, except for one', () => {
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

  test('end when they are closed, and no other process is prepared', async () => {
    create(1);
    const [first] = processes.pids;
    processes.close();
    await expect.poll(isGone(first), { timeout: EXITS_MS }).toBe(true);
    processes.prepare(limits);
    expect(processes.pids).toEqual([]);
  });
});
