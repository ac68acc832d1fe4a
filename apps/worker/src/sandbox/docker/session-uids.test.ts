import { describe, expect, test } from 'vitest';
import { SessionUids } from './session-uids.ts';

describe('the uids of sessions', () => {
  test('UIDS-1: no uid is assigned twice while its sandbox may be alive', () => {
    const uids = new SessionUids({ first: 100, last: 103 });
    uids.keep('earlier', 101);
    expect(['a', 'b', 'c'].map((id) => uids.take(id))).toEqual([100, 102, 103]);
    expect(uids.take('d')).toBe(undefined);
    uids.release('b');
    expect(uids.take('d')).toBe(102);
  });

  test('UIDS-2: a released uid is assigned again only after all others', () => {
    const uids = new SessionUids({ first: 100, last: 102 });
    const given = ['a', 'b', 'c', 'd'].map((id) => {
      const uid = uids.take(id);
      uids.release(id);
      return uid;
    });
    expect(given).toEqual([100, 101, 102, 100]);
  });
});
