import { SharedTimer } from '@shellfleet/concurrency';
import { readRecord, readStoredEvent } from '@shellfleet/mailbox';
import { newResult, ShellfleetError, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { ulid } from 'ulid';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LOOK_AGAIN_MS, PendingResults } from './pending-results.ts';

vi.mock(import('@shellfleet/mailbox'), async (original) => ({
  ...(await original()),
  readRecord: vi.fn(),
  readStoredEvent: vi.fn(),
}));

const redis = {} as Redis;
const keys = sessionKeys('ns', 'tenant', 's');
const wire = newResult({ outcome: 'success', exitCode: 0, reason: 'exited' });
const ended = { state: 'ended', event: '5-0' } as Awaited<ReturnType<typeof readRecord>>;
const running = { state: 'running', event: '' } as NonNullable<Awaited<ReturnType<typeof readRecord>>>;
const HOUR_MS = 3_600_000;
const noticeOf = (entryId: string, result = '') => ({ tenant: 'tenant', session: 's', entryId, event: '5-0', result });

let pending: PendingResults;
let history: { changes: number };
beforeEach(() => {
  vi.useFakeTimers();
  history = { changes: 0 };
  pending = new PendingResults(redis, history, new SharedTimer(LOOK_AGAIN_MS));
});
afterEach(() => {
  vi.useRealTimers();
  vi.resetAllMocks();
});

function expectEntry(entryId: string, { accepted = true, own = true } = {}) {
  const entry = pending.expect(keys, entryId);
  entry.accepted = accepted;
  const resubmit = vi.fn(async () => {});
  if (own) entry.resubmit = resubmit;
  return { entry, resubmit };
}

describe('pending results', () => {
  test('reject an entry whose record was replaced, and read those after it', async () => {
    const [{ entry: replaced }, { entry: next }] = [expectEntry(ulid(1)), expectEntry(ulid(2))];
    const cause = Object.assign(new Error('WRONGTYPE Operation against a key'), { name: 'ReplyError' });
    vi.mocked(readRecord)
      .mockRejectedValueOnce(new ShellfleetError('QUEUE_UNAVAILABLE', 'no usable answer', {}, { cause }))
      .mockResolvedValue(ended);
    const data = Buffer.from(JSON.stringify(wire));
    vi.mocked(readStoredEvent).mockResolvedValue({
      ...{ id: '5-0', type: 'command.completed', entryId: next.entryId, data },
    });
    await pending.look();
    const { commandId } = replaced;
    await expect(replaced.result()).rejects.toMatchObject({ code: 'INTERNAL', context: { commandId } });
    expect(await next.result()).toMatchObject({ outcome: 'success' });
  });

  // RESULTS-3
  test('submit an entry again that has no record, but only if Redis had accepted it', async () => {
    const inWindow = expectEntry(ulid(Date.now()), { accepted: false });
    const lost = expectEntry(ulid(Date.now()));
    vi.mocked(readRecord).mockResolvedValue(undefined);
    history.changes = 1;
    await pending.look();
    expect(inWindow.resubmit).not.toHaveBeenCalled();
    expect(lost.resubmit).toHaveBeenCalledTimes(1);
    expect(vi.mocked(readRecord).mock.calls.map(([, , entryId]) => entryId)).toEqual([lost.entry.entryId]);

    inWindow.entry.accepted = true;
    await pending.look();
    expect(inWindow.resubmit).toHaveBeenCalledTimes(1);
  });

  // RESULTS-3
  test.each<[string, { ageMs?: number; asleepMs?: number; changesBefore?: number; changes: number }]>([
    ['Redis was not replaced', { changes: 0 }],
    ['Redis had the record after its restart', { changesBefore: 1, changes: 1 }],
    ['the entry is 12 hours old', { ageMs: 12 * HOUR_MS, changes: 1 }],
    ['the process slept for 12 hours and its clock was set back', { asleepMs: 12 * HOUR_MS, changes: 1 }],
  ])(
    'reject an entry without a record, and do not submit again, when %s',
    async (_when, { ageMs = 0, asleepMs = 0, changesBefore = 0, changes }) => {
      const { entry, resubmit } = expectEntry(ulid(Date.now() - ageMs));
      history.changes = changesBefore;
      vi.mocked(readRecord).mockResolvedValueOnce(running).mockResolvedValue(undefined);
      await pending.look();
      vi.advanceTimersByTime(asleepMs);
      vi.setSystemTime(Date.now() - asleepMs);
      history.changes = changes;
      await pending.look();
      await expect(entry.result()).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
      expect(resubmit).not.toHaveBeenCalled();
    },
  );

  // RESULTS-3
  test('reject an entry of another process when its record is gone', async () => {
    const { entry } = expectEntry(ulid(), { own: false });
    history.changes = 1;
    vi.mocked(readRecord).mockResolvedValue(undefined);
    await pending.look();
    await expect(entry.result()).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
    expect(vi.getTimerCount()).toBe(0);
  });

  // RESULTS-1
  test('settle only the entry that a notice with a Result names', async () => {
    const first = expectEntry('a').entry;
    const second = expectEntry('b').entry;
    await pending.notice(noticeOf('a', JSON.stringify(wire)));
    expect(await first.result()).toEqual(wire);
    expect(second.settled).toBeUndefined();
    await pending.notice(noticeOf('unknown', JSON.stringify(wire)));
    await pending.notice(noticeOf('a', JSON.stringify(newResult({ outcome: 'lost' }))));
    expect(await first.result()).toEqual(wire);
  });

  test('read a Result from its event when the notice lacks it', async () => {
    const { entry } = expectEntry('a');
    const event = { id: '5-0', type: 'command.completed', entryId: 'a', data: Buffer.from(JSON.stringify(wire)) };
    vi.mocked(readStoredEvent).mockResolvedValue(event);
    await pending.notice(noticeOf('a'));
    expect(await entry.result()).toEqual(wire);
  });

  // RESULTS-2
  test('find a Result by the timer when its notice was lost', async () => {
    const { entry } = expectEntry('a');
    vi.mocked(readRecord).mockResolvedValueOnce(running).mockResolvedValue(ended);
    const event = { id: '5-0', type: 'command.completed', entryId: 'a', data: Buffer.from(JSON.stringify(wire)) };
    vi.mocked(readStoredEvent).mockResolvedValue(event);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(entry.settled).toBeUndefined();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await entry.result()).toEqual(wire);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('settle nothing while Redis is down, and read again after the next interval', async () => {
    const { entry } = expectEntry('a');
    vi.mocked(readRecord).mockRejectedValueOnce(new ShellfleetError('QUEUE_UNAVAILABLE', 'away'));
    await pending.look().catch(() => {});
    vi.mocked(readRecord).mockResolvedValue(ended);
    vi.mocked(readStoredEvent).mockRejectedValueOnce(new ShellfleetError('QUEUE_UNAVAILABLE', 'away'));
    await pending.look();
    expect(entry.settled).toBeUndefined();
    vi.mocked(readStoredEvent).mockResolvedValue(undefined);
    await pending.look();
    await expect(entry.result()).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
  });

  test('read the oldest entry of every session and 100 other entries at each interval', async () => {
    vi.mocked(readRecord).mockResolvedValue(running);
    for (let index = 0; index < 251; index++) expectEntry(`e${index}`);
    const other = pending.expect(sessionKeys('ns', 'tenant', 'other'), 'x');
    other.accepted = true;
    const looked: string[][] = [];
    for (let look = 0; look < 4; look++) {
      vi.mocked(readRecord).mockClear();
      await pending.look();
      looked.push(vi.mocked(readRecord).mock.calls.map(([, , entryId]) => entryId));
    }
    expect(looked.map((ids) => ids.slice(0, 2))).toEqual(Array.from({ length: 4 }, () => ['e0', 'x']));
    expect(looked.map((ids) => ids.slice(2).length)).toEqual([100, 100, 50, 100]);
    expect(new Set(looked.slice(0, 3).flat()).size).toBe(252);
  });

  // RESULTS-2
  test('find all ended entries at once after notices were lost, with few other reads', async () => {
    const entries = Array.from({ length: 700 }, (_, index) => expectEntry(`e${index}`).entry);
    const quiet = pending.expect(sessionKeys('ns', 'tenant', 'quiet'), 'q0');
    quiet.accepted = true;
    vi.mocked(readRecord).mockImplementation(async (_redis, _keys, id) =>
      /^e[0-5]?\d?\d$/.test(id) ? { ...running, state: 'ended', event: `1-${id.slice(1)}` } : running,
    );
    vi.mocked(readStoredEvent).mockImplementation(async (_redis, _keys, id) => ({
      ...{ id, type: 'command.completed', entryId: `e${id.slice(2)}`, data: Buffer.from(JSON.stringify(wire)) },
    }));
    await pending.lookAfterGap();
    expect(entries.filter(({ settled }) => settled !== undefined)).toHaveLength(600);
    expect(vi.mocked(readRecord).mock.calls.filter(([, , id]) => id === 'q0')).toHaveLength(1);
  });

  // RESULTS-2
  test('read again when notices are lost during a reading', async () => {
    const { entry } = expectEntry('a');
    let answer: (record: typeof running) => void = () => {};
    vi.mocked(readRecord).mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
    const looking = pending.look();
    vi.mocked(readRecord).mockResolvedValue(ended);
    const event = { id: '5-0', type: 'command.completed', entryId: 'a', data: Buffer.from(JSON.stringify(wire)) };
    vi.mocked(readStoredEvent).mockResolvedValue(event);
    await pending.lookAfterGap();
    answer(running);
    await looking;
    expect(await entry.result()).toEqual(wire);
  });

  test('keep the timer only while an entry is pending', () => {
    const { entry } = expectEntry('a', { accepted: false });
    expect(pending.expect(keys, 'a')).toBe(entry);
    expect(vi.getTimerCount()).toBe(1);
    pending.forget(entry);
    expect(vi.getTimerCount()).toBe(0);
  });

  // VIEW-1
  test('reject all earlier and later waits on close, and keep no timer', async () => {
    const error = new ShellfleetError('QUEUE_UNAVAILABLE', 'closed here');
    const { entry } = expectEntry('a');
    pending.close(error);
    await expect(entry.result()).rejects.toBe(error);
    await expect(pending.expect(keys, 'b').result()).rejects.toBe(error);
    expect(vi.getTimerCount()).toBe(0);
  });
});
