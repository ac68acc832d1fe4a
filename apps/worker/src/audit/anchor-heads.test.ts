import type { AuditHead } from '@shellfleet/protocol';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { anchorHeadsRegularly } from './anchor-heads.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('anchorHeadsRegularly', () => {
  test('stores the place and the changed heads every minute, and at the end', async () => {
    const heads = new Map<string, AuditHead>([['empty', { n: 0, mac: '' }]]);
    const stored: string[] = [];
    let isDown = false;
    const redis = {
      async hset(key: string, ...fields: string[]) {
        if (isDown) throw new Error('down');
        stored.push(`${key} ${fields.join(' ')}`);
      },
    };
    const logger = pino({ level: 'silent' });
    const anchoring = anchorHeadsRegularly(
      { heads: () => heads, stateDirectoryId: 'f' },
      { redis: redis as never, namespace: 'n', hostId: 'h', logger },
    );
    const place = 'n:{x0}:audits h f';
    // A host without records is listed as well.
    await vi.advanceTimersByTimeAsync(0);
    expect(stored.splice(0)).toEqual([place]);
    heads.set('t', { n: 1, mac: 'a' });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(stored.splice(0)).toEqual([place, 'n:{x0}:host:h:audit t {"n":1,"mac":"a"}']);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(stored.splice(0)).toEqual([place]);
    heads.set('t', { n: 2, mac: 'b' });
    isDown = true;
    await vi.advanceTimersByTimeAsync(60_000);
    isDown = false;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(stored.splice(0)).toEqual([place, 'n:{x0}:host:h:audit t {"n":2,"mac":"b"}']);
    heads.set('u', { n: 1, mac: 'c' });
    await anchoring.close();
    expect(stored).toEqual([place, 'n:{x0}:host:h:audit u {"n":1,"mac":"c"}']);
  });
});
