import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Inboxes, Subscriber } from './subscriber.ts';

class FakeRedis extends EventEmitter {
  readonly calls: { names: string[]; reply: PromiseWithResolvers<void> }[] = [];

  subscribe(...names: string[]): Promise<void> {
    const reply = Promise.withResolvers<void>();
    this.calls.push({ names, reply });
    return reply.promise;
  }

  async unsubscribe(): Promise<void> {}
  disconnect(): void {}
}

let redis: FakeRedis;
let subscriber: Subscriber;
beforeEach(() => {
  vi.useFakeTimers();
  redis = new FakeRedis();
  subscriber = new Subscriber(() => redis as unknown as Redis);
});
afterEach(() => {
  subscriber.close();
  vi.useRealTimers();
});

const newReceiver = () => ({ onMessage: vi.fn(), onGap: vi.fn() });
const settle = () => vi.advanceTimersByTimeAsync(0);

describe('subscriber', () => {
  // SUBSCRIBER-2
  test('reports a gap to every receiver only when the reconnected subscription is active', async () => {
    const [first, second] = [newReceiver(), newReceiver()];
    const added = [subscriber.add('a', first), subscriber.add('b', second)];
    for (const { reply } of redis.calls) reply.resolve();
    await Promise.all(added);
    redis.emit('ready');
    await settle();
    expect([redis.calls.at(-1)?.names, first.onGap.mock.calls.length]).toEqual([['a', 'b'], 0]);
    // The connection breaks before the reply, and is restored.
    redis.calls.at(-1)?.reply.reject(new Error('broken'));
    await settle();
    expect(first.onGap).not.toHaveBeenCalled();
    redis.emit('ready');
    redis.calls.at(-1)?.reply.resolve();
    await settle();
    expect([first.onGap, second.onGap].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  });

  test('makes no connection after it was closed', async () => {
    const connect = vi.fn();
    const closed = new Subscriber(connect);
    closed.close();
    await closed.add('a', newReceiver());
    expect([connect.mock.calls, vi.getTimerCount()]).toEqual([[], 0]);
  });

  test('subscribes again at intervals, and keeps no timer without receivers', async () => {
    const receiver = newReceiver();
    void subscriber.add('a', receiver);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(redis.calls.map(({ names }) => names)).toEqual([['a'], ['a']]);
    subscriber.remove('a', receiver);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('inboxes', () => {
  test('report a gap on opening, and pass ends and replies to their receivers', async () => {
    const inboxes = new Inboxes(subscriber, 'p1');
    const receiver = { onEnded: vi.fn(), onReply: vi.fn(), onGap: vi.fn() };
    const opened = inboxes.open('ns', 't', receiver);
    await settle();
    expect(receiver.onGap).not.toHaveBeenCalled();
    redis.calls[0]?.reply.resolve();
    await opened;
    expect(receiver.onGap).toHaveBeenCalledTimes(1);
    for (const message of ['e t:s entry 5-0 {"a": 1}', 'e t:s entry 5-1 ', 'a request sealed', 'a request ', 'none'])
      redis.emit('message', 'ns:inbox:t:p1', message);
    redis.emit('message', 'ns:inbox:other:p1', 'a request sealed');
    expect(receiver.onEnded.mock.calls).toEqual([
      [expect.objectContaining({ tenant: 't', session: 's', entryId: 'entry', event: '5-0', result: '{"a": 1}' })],
      [expect.objectContaining({ entryId: 'entry', event: '5-1', result: '' })],
    ]);
    expect(receiver.onReply.mock.calls).toEqual([
      ['request', 'sealed'],
      ['request', ''],
    ]);
    inboxes.remove('ns', 't');
    redis.emit('message', 'ns:inbox:t:p1', 'a request sealed');
    expect(receiver.onReply).toHaveBeenCalledTimes(2);
  });
});
