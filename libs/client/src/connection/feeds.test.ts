import { SharedTimer } from '@shellfleet/concurrency';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Feeds, WAKE_AGAIN_MS } from './feeds.ts';
import type { Receiver, Subscriber } from './subscriber.ts';

let receivers: Receiver[];
let feeds: Feeds;
beforeEach(() => {
  vi.useFakeTimers();
  receivers = [];
  const subscriber = {
    add: async (_channel: string, receiver: Receiver) => void receivers.push(receiver),
    remove() {},
  };
  feeds = new Feeds(subscriber as unknown as Subscriber, new SharedTimer(WAKE_AGAIN_MS));
});
afterEach(() => vi.useRealTimers());

describe('feeds', () => {
  test.each<[string, (hint: () => void) => void]>([
    ['a message', () => receivers[0]?.onMessage('5-0')],
    ['a gap', () => receivers[0]?.onGap()],
    ['a call of its hint, passed as a function', (hint) => hint()],
    ['a second and a half', () => void vi.advanceTimersByTime(1_500)],
  ])('wake a reader after %s', async (_what, wake) => {
    using reader = await feeds.follow('feed');
    let woken = 0;
    const waiting = reader.next().then(() => woken++);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(woken).toBe(0);
    wake(reader.hint);
    await waiting;
  });

  test('keep no timer after the last reader or the end of the view', async () => {
    const readers = [await feeds.follow('a'), await feeds.follow('b')];
    expect(vi.getTimerCount()).toBe(1);
    for (const reader of readers) reader[Symbol.dispose]();
    expect(vi.getTimerCount()).toBe(0);
    await feeds.follow('a');
    feeds.close(new Error('closed'));
    expect(vi.getTimerCount()).toBe(0);
  });
});
