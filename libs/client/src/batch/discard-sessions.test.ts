import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import type { UsedSession } from './used-session.ts';

const discard = vi.hoisted(() => vi.fn(async () => {}));
vi.mock('@shellfleet/mailbox', async (original) => ({ ...(await original<object>()), discard }));
const { DiscardSessions } = await import('./discard-sessions.ts');

const used = (count: number) =>
  Array.from({ length: count }, (): UsedSession => ({ keys: {}, generation: '', entryIds: [] }) as never);

describe('the sessions of a batch', () => {
  test('are discarded when their lines are on the disk, while the batch goes on', async () => {
    const synced = Promise.withResolvers<void>();
    const sync = vi.fn(() => synced.promise);
    const sessions = new DiscardSessions({ redis: {} } as never, { sync });
    await sessions.add(used(256));
    await sessions.add(used(255));
    let goesOn = false;
    const added = sessions.add(used(1)).then(() => {
      goesOn = true;
    });
    await turn();
    expect({ goesOn, discarded: discard.mock.calls.length }).toEqual({ goesOn: false, discarded: 0 });
    synced.resolve();
    await added;
    await sessions[Symbol.asyncDispose]();
    expect([discard.mock.calls.length, sync.mock.calls.length]).toEqual([512, 2]);
  });
});
