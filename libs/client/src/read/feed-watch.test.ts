import { EventEmitter } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FeedWatch } from './feed-watch.ts';

const KEYSPACE = 'ns:0123456789ab';
const ALL = 'ns:????????????:feed:*:*';

class FakeRedis extends EventEmitter {
  readonly patterns: string[] = [];
  forbidden: readonly string[] = [];
  psubscribe = async (pattern: string) => {
    if (this.forbidden.includes(pattern)) throw new Error('NOPERM No permissions to access a channel');
    this.patterns.push(pattern);
  };
  disconnect(): void {}
  say(member: string, message: string, keyspace = KEYSPACE): void {
    this.emit('pmessage', '', `${keyspace}:feed:${member}`, message);
  }
}

function watchFeeds({ start = '1000-0', most }: { start?: string; most?: number } = {}) {
  const redis = new FakeRedis();
  const watch = new FeedWatch(redis as never, KEYSPACE, undefined, most);
  watch.begin(start);
  return { redis, watch };
}

describe('FeedWatch', () => {
  test('FEED-1: takes each session with messages once, after its last known event', () => {
    const { redis, watch } = watchFeeds();
    expect(redis.patterns).toEqual([ALL]);
    for (const id of ['1001-0', '1002-0']) redis.say('t:a', id);
    redis.say('t:b', 'input');
    redis.say('t:a:terminal', '1003-0');
    expect(watch.take(9)).toEqual([{ member: 't:a', after: '1000-0' }]);
    expect(watch.take(9)).toEqual([]);
    watch.wasRead('t:a', '1002-10');
    watch.wasRead('t:a', '1002-9');
    redis.say('t:a', '1005-0');
    expect(watch.take(9)).toEqual([{ member: 't:a', after: '1002-10' }]);
  });

  test('takes at most so many at a time', () => {
    const { redis, watch } = watchFeeds();
    for (const member of ['t:a', 't:b', 't:c']) redis.say(member, '1001-0');
    expect([watch.changed, watch.take(2).length, watch.changed, watch.take(2).length]).toEqual([3, 2, 1, 1]);
  });

  test('FEED-2: reads no session for its output, nor the output for a later event', () => {
    const { redis, watch } = watchFeeds();
    redis.say('t:a', '1001-0 output');
    expect(watch.take(9)).toEqual([]);
    redis.say('t:a', '1002-0');
    redis.say('t:a', '1003-0 output');
    expect(watch.take(9)).toEqual([{ member: 't:a', after: '1001-0' }]);
  });

  test('FEED-2: leaves out no event before an output that arrives while the session is read', () => {
    const { redis, watch } = watchFeeds();
    redis.say('t:a', '1001-0');
    watch.take(9);
    redis.say('t:a', '1005-0 output');
    watch.wasRead('t:a', '1002-0');
    redis.say('t:a', '1006-0');
    expect(watch.take(9)).toEqual([{ member: 't:a', after: '1002-0' }]);
  });

  test('FEED-2: leaves out no event that was missed before an output after a reconnection', async () => {
    const { redis, watch } = watchFeeds();
    redis.say('t:a', '1001-0 output');
    redis.emit('ready');
    redis.emit('close');
    redis.emit('ready');
    redis.say('t:a', '1009-0 output');
    await watch.wait(1_000, undefined);
    expect(watch.take(9)).toEqual([{ member: 't:a', after: '1001-0' }]);
  });

  test('FEED-3: reads an unknown session from five minutes before its message', () => {
    const { redis, watch } = watchFeeds();
    redis.say('t:a', '900000-0');
    expect(watch.take(9)).toEqual([{ member: 't:a', after: '600000-0' }]);
  });

  test('FEED-3: forgets sessions after a while, whatever the ids of their messages', () => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
    onTestFinished(() => void clock.mockRestore());
    const { redis, watch } = watchFeeds();
    redis.say('t:forged', '999999999999999-0 output');
    redis.say('t:a', '1001-0 output');
    clock.mockReturnValue(600_001);
    for (let index = 0; index < 1_000; index += 1) redis.say('t:b', `700000-${index} output`);
    for (const member of ['t:forged', 't:a', 't:b']) redis.say(member, '900000-0');
    expect(watch.take(9).map(({ after }) => after)).toEqual(['600000-0', '600000-0', '700000-999']);
  });

  test('FEED-3: remembers a limited number of sessions, and reports those that it has left out', () => {
    const { redis, watch } = watchFeeds({ most: 100 });
    for (let index = 0; index < 1_000; index += 1) redis.say(`t:${index}`, `1001-${index} output`);
    for (const member of ['t:0', 't:999']) redis.say(member, '1002-0');
    expect(watch.take(9).map(({ after }) => after)).toEqual(['1000-0', '1001-999']);
    expect(watch.takeGap()).toBe(false);
    for (let index = 0; index < 101; index += 1) redis.say(`t:${index}`, '1003-0');
    expect([watch.changed, watch.takeGap()]).toEqual([100, true]);
  });

  test('ignores messages for what is no session, and those of other fleets', () => {
    const { redis, watch } = watchFeeds();
    for (const member of ['t:', ':a', 't', 't:a b', `t:${'x'.repeat(1_000)}`]) redis.say(member, '1001-0');
    redis.say('t:a', '1001-0', 'ns:ffffffffffff');
    expect(watch.changed).toBe(0);
  });

  test('takes the feeds of all tenants for one of them when only that is allowed', async () => {
    const redis = new FakeRedis();
    redis.forbidden = ['ns:????????????:feed:t:*'];
    const watch = new FeedWatch(redis as never, KEYSPACE, 't');
    await watch.subscribed;
    expect(redis.patterns).toEqual([ALL]);
    for (const member of ['other:a', 't:a']) redis.say(member, '1001-0');
    expect(watch.take(9)).toMatchObject([{ member: 't:a' }]);
  });

  test('is refused with the missing permission when the user may not subscribe', async () => {
    const redis = new FakeRedis();
    redis.forbidden = [ALL];
    await expect(new FeedWatch(redis as never, KEYSPACE, undefined).subscribed).rejects.toMatchObject({
      code: 'REDIS_UNSUITABLE',
      message: expect.stringContaining(`\`&${ALL}\``),
      context: { setting: 'acl', command: `PSUBSCRIBE ${ALL}` },
    });
  });

  test('reads all known sessions again after a reconnection', async () => {
    const { redis, watch } = watchFeeds();
    redis.emit('ready');
    watch.wasRead('t:a', '1001-0');
    expect(watch.takeGap()).toBe(false);
    redis.emit('ready');
    await watch.wait(1_000, undefined);
    expect([watch.takeGap(), watch.takeGap()]).toEqual([true, false]);
    expect(watch.take(9)).toEqual([{ member: 't:a', after: '1001-0' }]);
  });
});
