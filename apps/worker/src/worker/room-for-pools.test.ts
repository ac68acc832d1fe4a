import { describe, expect, test } from 'vitest';
import { roomForPools } from './room-for-pools.ts';

const room = (
  over: { isDraining?: boolean; takesNone?: boolean } = {},
  gate: { problems?: string[]; reason?: string | null; opening?: number } = {},
  sessions = { size: 4, sandboxes: 3 },
) =>
  roomForPools({
    ...{ slots: 10, sessions, isDraining: false, takesNone: false, ...over },
    gate: {
      problems: () => gate.problems ?? [],
      describe: () => ({ reason: gate.reason ?? null, opening: gate.opening ?? 0 }) as never,
    },
  });

describe('the room for sandboxes without a session', () => {
  test('is what sandboxes of sessions leave, and only free slots are filled', () => {
    expect(room()).toEqual({ most: 7, fillTo: 6 });
    expect(room({}, {}, { size: 12, sandboxes: 11 })).toEqual({ most: 0, fillTo: 0 });
  });

  test.each([
    ['is opened', { opening: 1 }],
    ['waits for the gate', { reason: 'Memory is short.' }],
  ])('is not filled while a session %s', (_, gate) => {
    expect(room({}, gate)).toEqual({ most: 7, fillTo: 0 });
  });

  test('stays as it is on a host that takes no session at present', () => {
    expect(room({ takesNone: true })).toEqual({ most: 7, fillTo: 0 });
  });

  test('ends when the host drains or is short of memory', () => {
    expect(room({ isDraining: true })).toEqual({ most: 0, fillTo: 0 });
    expect(room({}, { problems: ['Memory is short.'], reason: 'Memory is short.' })).toEqual({ most: 0, fillTo: 0 });
  });
});
