import { SharedTimer } from '@shellfleet/concurrency';
import { type SessionKeys, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { DrivenSessions } from './driven-sessions.ts';

let renewed: string[] = [];
const redis = {
  async pexpire(key: string) {
    renewed.push(key);
    return 1;
  },
};
const opened: DrivenSessions[] = [];
afterEach(() => {
  for (const driven of opened.splice(0)) driven.close();
});

function renewedBy(driven: DrivenSessions): string[] {
  renewed = [];
  driven.renew();
  return renewed;
}

const [a, b] = ['a', 'b'].map((id) => sessionKeys('n', 't', id)) as [SessionKeys, SessionKeys];

describe('driven sessions', () => {
  test('are renewed until every handle is disposed; disposing a handle twice changes nothing', () => {
    const driven = new DrivenSessions(redis as unknown as Redis, new SharedTimer(10_000));
    opened.push(driven);
    const [one, other, beside] = [driven.drive(a), driven.drive(a), driven.drive(b)];
    const [ofA, ofB] = renewedBy(driven);
    expect([ofA, ofB]).toEqual([expect.stringContaining(a.prefix), expect.stringContaining(b.prefix)]);
    one[Symbol.dispose]();
    one[Symbol.dispose]();
    expect(renewedBy(driven)).toEqual([ofA, ofB]);
    other[Symbol.dispose]();
    expect(renewedBy(driven)).toEqual([ofB]);
    driven.drive(a);
    expect(renewedBy(driven)).toEqual([ofB, ofA]);
    beside[Symbol.dispose]();
    expect(renewedBy(driven)).toEqual([ofA]);
  });
});
