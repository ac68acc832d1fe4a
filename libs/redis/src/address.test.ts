import { describe, expect, test } from 'vitest';
import { describeRedis, parseRedisUrl } from './address.ts';

describe('the address of Redis', () => {
  test.each([
    ['redis://', { kind: 'single', nodes: [{ host: 'localhost', port: 6379 }], db: 0 }],
    [
      'redis://user:p%40ss@[::1]:7000/3?family=6',
      { kind: 'single', nodes: [{ host: '::1', port: 7000 }], db: 3, username: 'user', password: 'p@ss', family: 6 },
    ],
    ['rediss://:only@h', { kind: 'single', nodes: [{ host: 'h', port: 6379 }], db: 0, password: 'only', tls: {} }],
    [
      'redis+sentinel://u:p@a,b:1/my%20master/2?sentinel-user=s&sentinel-password=t',
      {
        kind: 'sentinel',
        nodes: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 1 },
        ],
        name: 'my master',
        db: 2,
        username: 'u',
        password: 'p',
        sentinel: { username: 's', password: 't' },
      },
    ],
    [
      'rediss+cluster://a:1,b',
      {
        kind: 'cluster',
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 6379 },
        ],
        tls: {},
      },
    ],
  ])('parses %s', (url, address) => {
    expect(parseRedisUrl(url)).toEqual(address);
  });

  test.each([
    ['redis://secret@a,b', 'is not of the form'],
    ['redis+sentinel://:secret@a:1', 'names its primary'],
    ['redis+cluster://:secret@a:1/1', 'only database 0'],
    ['redis://:secret@a:70000', 'is not of the form'],
    ['redis://:secret@a/x', 'is not of the form'],
    ['redis://:secret@a?ca=/x', 'need a rediss:// URL'],
    ['redis://:secret@a?db=1', 'the parameters are ca'],
    ['rediss://:secret@a?ca=/no/such/file', 'ca file /no/such/file cannot be read (ENOENT)'],
    ['redis://:secret@%zz', 'is not of the form'],
    ['redis-sentinel://:secret@a', 'is not of the form'],
  ])('names the wrong setting and no password when it refuses %s', (url, reason) => {
    expect(() => parseRedisUrl(url)).toThrow(reason);
    expect(() => parseRedisUrl(url)).toThrow(/^(?!.*secret).*Check SHELLFLEET_REDIS_URL\.$/);
  });

  test('describes where Redis is without user, password and parameters', () => {
    expect(describeRedis('rediss://u:secret@example.org:7000/3?family=6')).toBe('example.org:7000');
    expect(describeRedis('redis://[::1]')).toBe('[::1]:6379');
    expect(describeRedis('redis+cluster://:secret@a:1,b:2')).toBe('a:1,b:2 (Cluster)');
    expect(describeRedis('redis+sentinel://:secret@a,b/mine?sentinel-password=secret')).toBe(
      'a:26379,b:26379 (Sentinel, mine)',
    );
  });
});
