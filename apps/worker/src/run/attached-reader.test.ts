import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AttachedReader } from './attached-reader.ts';

const MIB = 1 << 20;
const STALL_MS = 30_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function attach({ reachRedis = async () => {} }: { reachRedis?: () => Promise<void> } = {}) {
  let releases = 0;
  const reader = new AttachedReader({ stallMs: STALL_MS, reachRedis, clock: () => Date.now() });
  reader.onRelease = () => {
    releases += 1;
  };
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  /** Passes time in which the reader sends heartbeats, and reads nothing. */
  const wait = async (ms: number, stdout: number) => {
    for (let at = 0; at < ms; at += 1_000) {
      reader.seen({ stdout, stderr: 0 });
      await pass(1_000);
    }
  };
  return { reader, pass, wait, releases: () => releases };
}

describe('an attached reader', () => {
  test('holds output back above 4 MiB of unread bytes in both streams (READER-1)', () => {
    const { reader, releases } = attach();
    reader.stored('stdout', 3 * MIB);
    reader.stored('stderr', MIB);
    expect(reader.holdsBack).toBe(false);
    reader.stored('stderr', MIB + 1);
    expect(reader.holdsBack).toBe(true);
    reader.seen({ stdout: 1, stderr: 0 });
    expect([reader.holdsBack, releases()]).toEqual([false, 1]);
  });

  test('counts as gone after 10 s without a heartbeat, and throttles again when back (READER-2)', async () => {
    const { reader, pass, releases } = attach();
    reader.stored('stdout', 5 * MIB);
    await pass(9_900);
    expect(reader.holdsBack).toBe(true);
    await pass(1_100);
    expect([reader.holdsBack, releases()]).toEqual([false, 1]);
    reader.stored('stdout', 6 * MIB);
    expect(reader.holdsBack).toBe(false);
    reader.seen({ stdout: 0, stderr: 0 });
    reader.stored('stdout', 7 * MIB);
    expect(reader.holdsBack).toBe(true);
    reader.close();
  });

  test('holds output back without reading until the limit, and again after reading (READER-2)', async () => {
    const { reader, wait } = attach();
    reader.stored('stdout', 5 * MIB);
    await wait(STALL_MS - 1_000, 10);
    expect(reader.holdsBack).toBe(true);
    await wait(3_000, 10);
    expect(reader.holdsBack).toBe(false);
    reader.seen({ stdout: 10, stderr: 0 });
    reader.stored('stdout', 6 * MIB);
    expect(reader.holdsBack).toBe(false);
    reader.seen({ stdout: 11, stderr: 0 });
    reader.stored('stdout', 7 * MIB);
    expect(reader.holdsBack).toBe(true);
    reader.close();
  });

  test('holds output back for any time while it reads slowly', async () => {
    const { reader, pass } = attach();
    reader.stored('stdout', 50 * MIB);
    for (let at = 1; at < 20; at += 1) {
      await pass(9_000);
      reader.seen({ stdout: at, stderr: 0 });
    }
    expect(reader.holdsBack).toBe(true);
    reader.close();
  });

  test('does not count as gone because of time without Redis (READER-3)', async () => {
    let answers = Promise.withResolvers<void>();
    const { reader, pass } = attach({ reachRedis: () => answers.promise });
    reader.stored('stdout', 5 * MIB);
    await pass(15_000);
    answers.resolve();
    await pass(5_000);
    expect(reader.holdsBack).toBe(true);
    answers = Promise.withResolvers<void>();
    answers.resolve();
    await pass(7_000);
    expect(reader.holdsBack).toBe(false);
  });

  test('holds nothing back after a cancel or the end (READER-4)', async () => {
    const { reader, releases } = attach();
    reader.stored('stdout', 5 * MIB);
    const waiting = reader.untilMore({ stdout: 5 * MIB, stderr: 0 }, 60_000);
    reader.close();
    await waiting;
    reader.stored('stdout', 50 * MIB);
    expect([reader.holdsBack, releases()]).toEqual([false, 1]);
  });

  test('waits for more output, but no longer than it asked for', async () => {
    const { reader, pass } = attach();
    let ended = 0;
    const count = () => {
      ended += 1;
    };
    void reader.untilMore({ stdout: 0, stderr: 7 }, 2_000).then(count);
    await pass(1_900);
    expect(ended).toBe(0);
    await pass(200);
    expect(ended).toBe(1);
    void reader.untilMore({ stdout: 0, stderr: 7 }, 2_000).then(count);
    reader.stored('stderr', 8);
    await pass(0);
    expect(ended).toBe(2);
  });
});
