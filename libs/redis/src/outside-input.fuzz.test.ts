import { fuzzText, refusalOf } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { describeRedis, parseRedisUrl } from './address.ts';

describe('the address of Redis, for any text', () => {
  test('is parsed, or refused by an error without the password', () => {
    const valid = [
      'redis://user:hunter2-hunter2@host:6379/1',
      'rediss://:hunter2-hunter2@[::1]:1?family=6',
      'redis+sentinel://a:1,b:2/name/3?sentinel-password=hunter2-hunter2',
      'redis+cluster://a,b:7000',
    ];
    fuzzText(valid, (text) => {
      const refusal = refusalOf(() => parseRedisUrl(text)) ?? refusalOf(() => describeRedis(text));
      expect(refusal?.message ?? '').not.toContain('hunter2-hunter2');
      if (refusal !== undefined) expect(refusal.code).toBe('REDIS_UNSUITABLE');
    });
  });
});
