import { readRecord, readStreamEntry } from '@shellfleet/mailbox';
import { newResult, ShellfleetError, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { ulid } from 'ulid';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PendingResults } from './pending-results.ts';

vi.mock(import('@shellfleet/mailbox'), async (original) => ({
  ...(await original()),
  readRecord: vi.fn(),
  readStreamEntry: vi.fn(),
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
  pending = new PendingResults(redis, history);
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

test('RESULTS-3: look() never submits again an entry that Redis has not accepted, and does submit again an accepted one whose record Redis lost', async () => {
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

test.each<[string, { ageMs?: number; asleepMs?: number; changesBefore?: number; changes: number }]>([
  ['Redis is still the same one', { changes: 0 }],
  ['Redis had its record after it was restarted', { changesBefore: 1, changes: 1 }],
  ['it is not far younger than the retention', { ageMs: 12 * HOUR_MS, changes: 1 }],
  ['this process slept for long, and its clock was set back', { asleepMs: 12 * HOUR_MS, changes: 1 }],
])(
  'RESULTS-3: an entry without a record settles with RESULT_EXPIRED, and is not submitted again, when %s',
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

test('RESULTS-3: an entry of another process whose record is gone settles with RESULT_EXPIRED', async () => {
  const { entry } = expectEntry(ulid(), { own: false });
  history.changes = 1;
  vi.mocked(readRecord).mockResolvedValue(undefined);
  await pending.look();
  await expect(entry.result()).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
  expect(vi.getTimerCount()).toBe(0);
});

test('RESULTS-1: a notice with the Result settles its entry, and no other of that session', async () => {
  const first = expectEntry('a').entry;
  const second = expectEntry('b').entry;
  await pending.notice(noticeOf('a', JSON.stringify(wire)));
  expect(await first.result()).toEqual(wire);
  expect(second.settled).toBeUndefined();
  await pending.notice(noticeOf('unknown', JSON.stringify(wire)));
  await pending.notice(noticeOf('a', JSON.stringify(newResult({ outcome: 'lost' }))));
  expect(await first.result()).toEqual(wire);
});

test('a notice without the Result reads it from its event', async () => {
  const { entry } = expectEntry('a');
  const event = { id: '5-0', type: 'command.completed', entryId: 'a', data: Buffer.from(JSON.stringify(wire)) };
  vi.mocked(readStreamEntry).mockResolvedValue(event);
  await pending.notice(noticeOf('a'));
  expect(await entry.result()).toEqual(wire);
});

test('RESULTS-2: a Result whose notice was lost is found by the timer', async () => {
  const { entry } = expectEntry('a');
  vi.mocked(readRecord).mockResolvedValueOnce(running).mockResolvedValue(ended);
  const event = { id: '5-0', type: 'command.completed', entryId: 'a', data: Buffer.from(JSON.stringify(wire)) };
  vi.mocked(readStreamEntry).mockResolvedValue(event);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(entry.settled).toBeUndefined();
  await vi.advanceTimersByTimeAsync(3_000);
  expect(await entry.result()).toEqual(wire);
  expect(vi.getTimerCount()).toBe(0);
});

test('while Redis is down nothing settles, and the next look tries again', async () => {
  const { entry } = expectEntry('a');
  vi.mocked(readRecord).mockRejectedValueOnce(new ShellfleetError('QUEUE_UNAVAILABLE', 'away'));
  await pending.look().catch(() => {});
  vi.mocked(readRecord).mockResolvedValue(ended);
  vi.mocked(readStreamEntry).mockRejectedValueOnce(new ShellfleetError('QUEUE_UNAVAILABLE', 'away'));
  await pending.look();
  expect(entry.settled).toBeUndefined();
  vi.mocked(readStreamEntry).mockResolvedValue(undefined);
  await pending.look();
  await expect(entry.result()).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
});

test('each look reads the oldest entry of every session, and of the others the next 100', async () => {
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

test('RESULTS-2: after a gap one look finds every end whose notice was lost, however many there are, and reads little beyond them', async () => {
  const entries = Array.from({ length: 700 }, (_, index) => expectEntry(`e${index}`).entry);
  const quiet = pending.expect(sessionKeys('ns', 'tenant', 'quiet'), 'q0');
  quiet.accepted = true;
  vi.mocked(readRecord).mockImplementation(async (_redis, _keys, id) =>
    /^e[0-5]?\d?\d$/.test(id) ? { ...running, state: 'ended', event: `1-${id.slice(1)}` } : running,
  );
  vi.mocked(readStreamEntry).mockImplementation(async (_redis, _keys, id) => ({
    ...{ id, type: 'command.completed', entryId: `e${id.slice(2)}`, data: Buffer.from(JSON.stringify(wire)) },
  }));
  await pending.lookAfterGap();
  expect(entries.filter(({ settled }) => settled !== undefined)).toHaveLength(600);
  expect(vi.mocked(readRecord).mock.calls.filter(([, , id]) => id === 'q0')).toHaveLength(1);
});

test('RESULTS-2: a look that is under way when notices were lost is followed by another one', async () => {
  const { entry } = expectEntry('a');
  let answer: (record: typeof running) => void = () => {};
  vi.mocked(readRecord).mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
  const looking = pending.look();
  vi.mocked(readRecord).mockResolvedValue(ended);
  const event = { id: '5-0', type: 'command.completed', entryId: 'a', data: Buffer.from(JSON.stringify(wire)) };
  vi.mocked(readStreamEntry).mockResolvedValue(event);
  await pending.lookAfterGap();
  answer(running);
  await looking;
  expect(await entry.result()).toEqual(wire);
});

test('the timer runs while something is pending, and not longer', () => {
  const { entry } = expectEntry('a', { accepted: false });
  expect(pending.expect(keys, 'a')).toBe(entry);
  expect(vi.getTimerCount()).toBe(1);
  pending.forget(entry);
  expect(vi.getTimerCount()).toBe(0);
});

test('VIEW-1: closing rejects every wait, those that come later too, and leaves no timer', async () => {
  const error = new ShellfleetError('QUEUE_UNAVAILABLE', 'closed here');
  const { entry } = expectEntry('a');
  pending.close(error);
  await expect(entry.result()).rejects.toBe(error);
  await expect(pending.expect(keys, 'b').result()).rejects.toBe(error);
  expect(vi.getTimerCount()).toBe(0);
});
