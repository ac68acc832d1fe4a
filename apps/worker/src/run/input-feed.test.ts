import type { InputRead } from '@shellfleet/mailbox';
import { ShellfleetError } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Shell } from '../shell/shell.ts';
import { InputFeed } from './input-feed.ts';

type Answer = Extract<InputRead, { type: 'read' }>;

/** A mailbox whose replies the test sets, and a shell that records its input. */
function stage() {
  let answer: Answer = { type: 'read', written: 0, lapsedMs: 0, chunks: [], signed: '' };
  let isAway = false;
  const positions: { taken: number; from: number; mostBytes: number }[] = [];
  const given: string[] = [];
  const stops: string[] = [];
  const shell = {
    input: (_entryId: string, offset: number, bytes: Uint8Array, end: boolean) => {
      given.push(`${offset} ${Buffer.from(bytes).toString()}${end ? '.' : ''}`);
    },
  } as unknown as Shell;
  const feed = new InputFeed({
    entryId: 'e',
    commandId: 's.e',
    async read(position, onAway) {
      while (isAway) {
        onAway();
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      positions.push(position);
      return { ...answer, chunks: answer.chunks.filter(({ end }) => end > position.from) };
    },
    openChunk(sealed) {
      if (sealed === 'foreign') throw new ShellfleetError('SEAL_KEY_UNKNOWN', 'sealed by another');
      return Buffer.from(sealed);
    },
    checkEnd({ closes, bytes }, signed) {
      if (signed === 'forged') throw new ShellfleetError('UNAUTHORIZED', `${closes} after ${bytes}`);
    },
    stop: () => stops.push('stop'),
  });
  const say = async (next: Partial<Answer>) => {
    answer = { ...answer, ...next };
    feed.wakeUp();
    await vi.advanceTimersByTimeAsync(0);
  };
  const away = (now: boolean) => {
    isAway = now;
  };
  return { feed, shell, say, away, positions, given, stops };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('the input of a command', () => {
  test('reaches the shell in order, followed by its end', async () => {
    const { feed, shell, say, given } = stage();
    await say({ written: 3, chunks: [{ end: 3, sealed: 'abc' }] });
    expect(given).toEqual([]);
    feed.connected(shell, 'start');
    await say({});
    const chunks = [
      { end: 3, sealed: 'abc' },
      { end: 5, sealed: 'de' },
    ];
    await say({ written: 5, chunks });
    await say({ closed: 'end' });
    expect(given).toEqual(['0 abc', '3 de', '5 .']);
    feed.close();
  });

  test("continues at the pipe's offset after a broken connection, and repeats the end", async () => {
    const { feed, shell, say, given, positions } = stage();
    feed.connected(shell, 'start');
    await say({ written: 6, closed: 'end', chunks: [{ end: 6, sealed: 'abcdef' }] });
    expect(given.splice(0)).toEqual(['0 abcdef', '6 .']);
    feed.connected(shell, 'resume');
    await say({});
    expect(given).toEqual([]);
    feed.taken(2, false);
    await say({});
    expect(given).toEqual(['2 cdef', '6 .']);
    expect(positions.at(-1)).toEqual({ taken: 2, from: 2, mostBytes: (3 << 18) + 1 });
    feed.close();
  });

  test("is not read beyond the keeper's window", async () => {
    const { feed, shell, say, positions } = stage();
    feed.connected(shell, 'start');
    await say({ written: 1 << 20, chunks: [{ end: 1 << 20, sealed: 'x'.repeat(1 << 20) }] });
    expect(positions.at(-1)).toEqual({ taken: 0, from: 1 << 20, mostBytes: 0 });
    feed.taken(1 << 19, false);
    await say({});
    expect(positions.at(-1)).toEqual({ taken: 1 << 19, from: 1 << 20, mostBytes: (1 << 18) + 1 });
    feed.close();
  });

  test('is discarded after the reader has closed, even without a lease', async () => {
    const { feed, shell, say, positions, stops } = stage();
    feed.connected(shell, 'start');
    feed.taken(0, true);
    await say({ written: 3, lapsedMs: 60_000, chunks: [{ end: 3, sealed: 'abc' }] });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(positions.at(-1)?.taken).toBe(Number.MAX_SAFE_INTEGER);
    expect([feed.failure, stops]).toEqual([undefined, []]);
    feed.close();
  });

  test("stops the command when its submitter's lease stays expired", async () => {
    const { feed, shell, say, stops } = stage();
    feed.connected(shell, 'start');
    await say({ written: 3, lapsedMs: 1 });
    await vi.advanceTimersByTimeAsync(1_500);
    expect(stops).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(stops).toEqual(['stop']);
    expect(feed.failure?.toJSON()).toEqual({
      code: 'STDIN_INCOMPLETE',
      message:
        'The stdin of command s.e is incomplete: the process that streamed it went away, 3 bytes after its beginning. The command was stopped; submit it again if that is safe.',
      retryable: false,
      context: { commandId: 's.e', bytes: 3 },
    });
    // The connection over which the stop was sent may have been broken.
    feed.connected(shell, 'resume');
    expect(stops).toEqual(['stop', 'stop']);
  });

  test("does not count time without Redis against the submitter's lease", async () => {
    const { feed, shell, say, away, stops } = stage();
    feed.connected(shell, 'start');
    await say({ lapsedMs: 1 });
    await vi.advanceTimersByTimeAsync(1_500);
    away(true);
    await vi.advanceTimersByTimeAsync(5_000);
    away(false);
    await vi.advanceTimersByTimeAsync(1_500);
    await say({ lapsedMs: 0 });
    await vi.advanceTimersByTimeAsync(10_000);
    expect([feed.failure, stops]).toEqual([undefined, []]);
    feed.close();
  });

  test.each([
    ['a source that failed', { closed: 'broken' as const }, 'STDIN_INCOMPLETE', 'its source failed'],
    ['what Redis has lost', { written: 1, chunks: [] }, 'STDIN_INCOMPLETE', 'Redis has lost the rest, 1 bytes'],
    ['what no key opens', { written: 9, chunks: [{ end: 9, sealed: 'foreign' }] }, 'SEAL_KEY_UNKNOWN', 'sealed by'],
  ])('stops the command at once after %s', async (_, next, code, words) => {
    const { feed, shell, say, stops } = stage();
    feed.connected(shell, 'start');
    await say({ written: 3, chunks: [{ end: 3, sealed: 'abc' }] });
    await say(next);
    expect([feed.failure?.code, stops]).toEqual([code, ['stop']]);
    expect(feed.failure?.message).toContain(words);
  });

  test('is read about a second later when its wake-up was lost', async () => {
    const { feed, shell, say, given } = stage();
    feed.connected(shell, 'start');
    await vi.advanceTimersByTimeAsync(10);
    const { wakeUp } = feed;
    feed.wakeUp = () => {};
    await say({ written: 3, chunks: [{ end: 3, sealed: 'abc' }] });
    expect(given).toEqual([]);
    feed.wakeUp = wakeUp;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(given).toEqual(['0 abc']);
    feed.close();
  });

  test('stops the command instead of passing on an unsigned end', async () => {
    const { feed, shell, say, given, stops } = stage();
    feed.connected(shell, 'start');
    await say({ written: 3, chunks: [{ end: 3, sealed: 'abc' }] });
    await say({ closed: 'end', signed: 'forged' });
    expect(given).toEqual(['0 abc']);
    expect(stops).toEqual(['stop']);
    expect(feed.failure).toMatchObject({ code: 'UNAUTHORIZED', message: 'end after 3' });
  });

  test('stops the command at a missing chunk, whatever follows', async () => {
    const { feed, shell, say, given, stops } = stage();
    feed.connected(shell, 'start');
    await say({
      written: 9,
      chunks: [
        { end: 3, sealed: 'abc' },
        { end: 9, sealed: 'ghi' },
      ],
    });
    expect(given).toEqual(['0 abc']);
    expect(stops).toEqual(['stop']);
    expect(feed.failure).toMatchObject({ code: 'STDIN_INCOMPLETE' });
  });
});
