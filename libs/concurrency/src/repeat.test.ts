import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { repeat } from './repeat.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const onError = vi.fn();

describe('repeat', () => {
  test('calls its round once per interval until it is closed', async () => {
    const round = vi.fn(async () => {});
    const rounds = repeat(round, { everyMs: 10, onError });
    await vi.advanceTimersByTimeAsync(35);
    await rounds.close();
    await vi.advanceTimersByTimeAsync(35);
    expect(round).toHaveBeenCalledTimes(3);
  });

  test('leaves out a round that is due while another is under way', async () => {
    const first = Promise.withResolvers<void>();
    const round = vi.fn(() => first.promise);
    const rounds = repeat(round, { everyMs: 10, onError });
    await vi.advanceTimersByTimeAsync(35);
    expect(round).toHaveBeenCalledTimes(1);
    first.resolve();
    await vi.advanceTimersByTimeAsync(10);
    expect(round).toHaveBeenCalledTimes(2);
    await rounds.close();
  });

  test('begins no round while `mayBegin` forbids it', async () => {
    let isAllowed = false;
    const round = vi.fn();
    const rounds = repeat(round, { everyMs: 10, onError, mayBegin: () => isAllowed });
    await vi.advanceTimersByTimeAsync(25);
    expect(round).not.toHaveBeenCalled();
    isAllowed = true;
    await vi.advanceTimersByTimeAsync(10);
    expect(round).toHaveBeenCalledTimes(1);
    await rounds.close();
  });

  test.each([
    ['rejects', () => Promise.reject(new Error('away'))],
    [
      'throws',
      () => {
        throw new Error('away');
      },
    ],
  ])('reports the error of a round that %s, and goes on', async (_how, round) => {
    const report = vi.fn();
    const rounds = repeat(round, { everyMs: 10, onError: report });
    await vi.advanceTimersByTimeAsync(25);
    await rounds.close();
    expect(report.mock.calls).toEqual([[new Error('away')], [new Error('away')]]);
  });

  test('runs a round at once when now() is called, or joins the round under way', async () => {
    const first = Promise.withResolvers<void>();
    const round = vi.fn(() => first.promise);
    const rounds = repeat(round, { everyMs: 10, onError });
    const both = Promise.all([rounds.now(), rounds.now()]);
    first.resolve();
    await both;
    expect(round).toHaveBeenCalledTimes(1);
    await rounds.close();
  });

  test('closes when the round under way has ended', async () => {
    const first = Promise.withResolvers<void>();
    const rounds = repeat(() => first.promise, { everyMs: 10, onError });
    const ended = vi.fn();
    void rounds.now();
    const closed = rounds.close().then(ended);
    await vi.advanceTimersByTimeAsync(50);
    expect(ended).not.toHaveBeenCalled();
    first.resolve();
    await closed;
  });
});
