import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import { FeedWatch } from './feed-watch.ts';

class FakeRedis extends EventEmitter {
  readonly patterns: string[] = [];
  psubscribe = async (pattern: string) => void this.patterns.push(pattern);
  disconnect(): void {}
  say(member: string, message: string): void {
    this.emit('pmessage', '', `ns:feed:${member}`, message);
  }
}

function watchFeeds(start = '1000-0') {
  const redis = new FakeRedis();
  return { redis, watch: new FeedWatch(redis as never, 'ns', undefined, start) };
}

describe('FeedWatch', () => {
  test('FEED-1: takes each session with messages once, after its last known event', () => {
    const { redis, watch } = watchFeeds();
    expect(redis.patterns).toEqual(['ns:feed:*:*']);
    for (const id of ['1001-0', '1002-0']) redis.say('t:a', id);
    redis.say('t:b', 'input');
    redis.say('t:a:terminal', '1003-0');
    expect(watch.take()).toEqual([{ member: 't:a', after: '1000-0' }]);
    expect(watch.take()).toEqual([]);
    watch.wasRead('t:a', '1002-10');
    watch.wasRead('t:a', '1002-9');
    redis.say('t:a', '1005-0');
    expect(watch.take()).toEqual([{ member: 't:a', after: '1002-10' }]);
  });

  test('FEED-2: reads no session for its output, nor the output for a later event', () => {
    const { redis, watch } = watchFeeds();
    redis.say('t:a', '1001-0 output');
    expect(watch.take()).toEqual([]);
    redis.say('t:a', '1002-0');
    redis.say('t:a', '1003-0 output');
    expect(watch.take()).toEqual([{ member: 't:a', after: '1001-0' }]);
  });

  test('FEED-3: reads an unknown session from five minutes before its message', () => {
    const { redis, watch } = watchFeeds();
    redis.say('t:a', '900000-0');
    expect(watch.take()).toEqual([{ member: 't:a', after: '600000-0' }]);
  });

  test('reads all known sessions again after a reconnection', async () => {
    const { redis, watch } = watchFeeds();
    redis.emit('ready');
    watch.wasRead('t:a', '1001-0');
    expect(watch.takeGap()).toBe(false);
    redis.emit('ready');
    await watch.wait(1_000, undefined);
    expect([watch.takeGap(), watch.takeGap()]).toEqual([true, false]);
    expect(watch.take()).toEqual([{ member: 't:a', after: '1001-0' }]);
  });
});
