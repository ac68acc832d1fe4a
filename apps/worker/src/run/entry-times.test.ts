import type { Entry } from '@shellfleet/mailbox';
import { describe, expect, test } from 'vitest';
import { NEVER_OPENED } from '../shell/opening.ts';
import { askedMs, timesOf } from './entry-times.ts';
import { SessionTimes } from './session-times.ts';

/** Time by which the clock of the host is ahead. */
const AHEAD_MS = 1_000_000;

const sessionTimes = (own: { ownedAt?: number; activeAt?: number; running?: Entry } = {}) =>
  new SessionTimes({ ownedAt: 0, activeAt: 0, clockAheadMs: AHEAD_MS, ...own });
const entry = (own: Partial<Entry>) => ({ acceptedAt: 1_000, startedAt: 0, ...own }) as Entry;
const onHost = (from: number, to: number) => ({ from: from + AHEAD_MS, to: to + AHEAD_MS });

describe('the times of an entry', () => {
  test('have no waits for an entry that started at once', () => {
    expect(timesOf(entry({ startedAt: 1_002 }), sessionTimes(), NEVER_OPENED, { runMs: 30, firstOutputMs: 4 })).toEqual(
      {
        timings: { queuedMs: 2, startMs: 0, runMs: 30, totalMs: 32 },
        receipt: { acceptedAt: 1_000, firstOutputMs: 4 },
      },
    );
  });

  test('name the slot, the pull and the opening, though the clocks differ', () => {
    const opened = { ...onHost(1_400, 1_950), pull: onHost(1_450, 1_850) };
    expect(timesOf(entry({ startedAt: 2_000 }), sessionTimes({ ownedAt: 1_390 }), opened)).toEqual({
      timings: { queuedMs: 450, startMs: 550, runMs: 0, totalMs: 1_000 },
      receipt: {
        acceptedAt: 1_000,
        waits: [
          ['slot', 390],
          ['waiting', 10],
          ['opening', 50],
          ['image', 400],
          ['opening', 100],
        ],
      },
    });
  });

  test('name the earlier commands that ended on this host', () => {
    const times = sessionTimes({ ownedAt: 500 });
    times.recordEnd('1600-3');
    expect(timesOf(entry({ startedAt: 1_600 }), times, onHost(400, 900)).receipt.waits).toEqual([['earlier', 600]]);
  });

  test('name the person who was asked, before another slot was needed', () => {
    const asked = { from: 1_100, to: 1_500 };
    const times = sessionTimes({ ownedAt: 1_700 });
    expect(timesOf(entry({ startedAt: 1_720, asked }), times, NEVER_OPENED).receipt.waits).toEqual([
      ['slot', 100],
      ['approval', 400],
      ['slot', 200],
    ]);
  });

  test('name an earlier attempt', () => {
    const again = entry({ firstStartedAt: 1_300, startedAt: 1_900, asked: { from: 1_500, to: 1_800 } });
    expect(timesOf(again, sessionTimes({ ownedAt: 1_200 }), NEVER_OPENED).receipt.waits).toEqual([
      ['slot', 200],
      ['waiting', 100],
      ['attempt', 200],
      ['approval', 300],
      ['attempt', 100],
    ]);
  });

  test('have the opening of another shell after the start', () => {
    const { timings, receipt } = timesOf(entry({ startedAt: 1_010 }), sessionTimes(), onHost(1_011, 1_511));
    expect(timings).toEqual({ queuedMs: 10, startMs: 0, runMs: 0, totalMs: 10 });
    expect(receipt).toEqual({ acceptedAt: 1_000, openingMs: 500 });
  });

  test('name no cause of an owner that came after the start', () => {
    const running = entry({ startedAt: 1_400 });
    const times = sessionTimes({ ownedAt: 5_000, activeAt: 1_400, running });
    expect(timesOf(running, times, NEVER_OPENED)).toEqual({
      timings: { queuedMs: 400, startMs: 0, runMs: 0, totalMs: 400 },
      receipt: { acceptedAt: 1_000 },
    });
  });

  test('go up to now for an entry that never started', () => {
    const now = Date.now() - AHEAD_MS;
    const denied = entry({ acceptedAt: now - 60_000, asked: { from: now - 50_000, to: undefined } });
    const { timings, receipt } = timesOf(denied, sessionTimes({ ownedAt: now - 55_000 }), NEVER_OPENED);
    expect(receipt).toMatchObject({
      unstarted: true,
      waits: [
        ['slot', 5_000],
        ['waiting', 5_000],
        ['approval', expect.any(Number)],
      ],
    });
    expect(timings.queuedMs).toBeGreaterThanOrEqual(60_000);
    expect(timings.totalMs).toBe(timings.queuedMs);
    expect(askedMs(denied, sessionTimes())).toBeGreaterThanOrEqual(50_000);
  });

  test('are never negative', () => {
    expect(timesOf(entry({ startedAt: 900 }), sessionTimes(), onHost(0, 5_000), { runMs: 7 }).timings).toEqual({
      ...{ queuedMs: 0, startMs: 0, runMs: 7, totalMs: 7 },
    });
    expect(askedMs({ asked: { from: 9, to: 5 } }, sessionTimes())).toBe(0);
    expect(askedMs({}, sessionTimes())).toBe(0);
  });
});
