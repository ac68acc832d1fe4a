import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { ToolLauncher } from './tool-launcher.ts';
import type { ToolProcessEnd } from './tool-process.ts';

const EXITS_MS = 20_000;
const MIB = 1_048_576;
const limits = { memoryBytes: 512 * MIB, dataBytes: 512 * MIB };
const everyday = fileURLToPath(new URL('../../../../tests/fixtures/tools/everyday.ts', import.meta.url));
const hostile = fileURLToPath(new URL('../../../../tests/fixtures/tools/hostile.ts', import.meta.url));

const mark = `test:launcher:${process.pid}:`;

let launcher: ToolLauncher;
afterEach(() => launcher.close());

function create(clear?: () => Promise<unknown>): ToolLauncher {
  launcher = new ToolLauncher({
    ...(clear && { clear }),
    ...{ slots: 1, env: { PATH: process.env.PATH ?? '' }, mark, preload: [] },
    logger: pino({ level: 'silent' }),
  });
  return launcher;
}

function call(exported: string, args: unknown, module = everyday, signal = new AbortController().signal) {
  return launcher.run(limits, {
    request: { type: 'call', module, exported, name: exported, outputBytes: MIB },
    args: JSON.stringify(args),
    timeoutMs: 60_000,
    outputBytes: MIB,
    signal,
  });
}

const output = (end: ToolProcessEnd) => (end.type === 'reported' ? JSON.parse(end.body.toString()) : end);

/** Whether a process runs. */
function runs(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Ids of the processes that the launcher started. */
function marked(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark);
    } catch {
      return false;
    }
  });
}

describe('the launcher of tool processes', () => {
  test('is replaced when it dies, and its call and processes end (TOOL-LAUNCHER-2)', async () => {
    create();
    await call('add', { a: 1, b: 2 });
    const first = launcher.pid as number;
    const calling = call('loops', {}, hostile);
    process.kill(first, 'SIGKILL');
    await expect(calling).rejects.toThrow('has died');
    await expect.poll(marked, { timeout: EXITS_MS }).toEqual([]);
    expect(output(await call('add', { a: 1, b: 2 }))).toEqual({ sum: 3 });
    expect(launcher.pid).not.toBe(first);
  });

  test("starts nothing before a dead launcher's processes have ended (TOOL-LAUNCHER-2)", async () => {
    const cleared = Promise.withResolvers<void>();
    create(() => cleared.promise);
    await call('add', { a: 1, b: 2 });
    const first = launcher.pid as number;
    const calling = call('loops', {}, hostile);
    process.kill(first, 'SIGKILL');
    await expect(calling).rejects.toThrow('has died');
    const next = call('add', { a: 3, b: 4 });
    await new Promise(setImmediate);
    expect(launcher.pid).toBeUndefined();
    cleared.resolve();
    expect(output(await next)).toEqual({ sum: 7 });
  });

  test('ignores the signals that end a worker, and ends when it is closed', async () => {
    create();
    await call('add', { a: 1, b: 2 });
    const pid = launcher.pid as number;
    process.kill(pid, 'SIGINT');
    process.kill(pid, 'SIGTERM');
    expect(output(await call('add', { a: 1, b: 2 }))).toEqual({ sum: 3 });
    expect(launcher.pid).toBe(pid);
    launcher.close();
    await expect.poll(() => runs(pid), { timeout: EXITS_MS }).toBe(false);
  });

  test('ends a call that is stopped', async () => {
    create();
    const stop = new AbortController();
    const calling = call('loops', {}, hostile, stop.signal);
    stop.abort();
    expect(await calling).toMatchObject({ type: 'stopped' });
  });
});
