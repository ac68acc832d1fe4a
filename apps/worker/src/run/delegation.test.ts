import type { Owner } from '@shellfleet/mailbox';
import { type CarriedEntry, entryIdSchema, sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test, vi } from 'vitest';
import type { BegunId } from '../journal/journal.ts';
import { Delegation } from './delegation.ts';

const id = entryIdSchema.parse('01M83GJZ7TQZQ9XE36XT5S64QZ');
const STARTED: CarriedEntry = {
  ...{ id, payload: 'sealed', kind: 'command', inbox: 'p1', acceptedAt: '1', retry: 'never' },
  ...{ startedAt: '2', fence: '7' },
};
const HEAD: CarriedEntry = { ...STARTED, startedAt: '' };

const next = entryIdSchema.parse('01M83GJZ7TQZQ9XE36XT5S64R0');

function setUp(admission = '') {
  const begun = new Set<string>();
  const owner = { fence: 7, host: 'h1', keys: sessionKeys('ns', 't', 's'), admission } as Owner;
  const journal = { knows: (entry: BegunId) => begun.has(entry.id) };
  const withdraw = vi.fn();
  return { begun, withdraw, delegation: new Delegation({ mailbox: { owner, withdraw }, journal }) };
}

describe('the delegation of a session', () => {
  test('returns an entry that a wake-up brought, once', async () => {
    const { delegation } = setUp();
    delegation.bring(STARTED);
    expect(await delegation.next('takes', false)).toEqual({
      type: 'started',
      entry: {
        ...{ id, payload: 'sealed', kind: 'command', inbox: 'p1', acceptedAt: 1, retry: 'never', starts: 1 },
        ...{ startedAt: 2, fence: 7, host: 'h1', offsets: { stdout: 0, stderr: 0 }, seq: 0 },
      },
    });
    expect(await delegation.next('takes', false)).toEqual({ type: 'empty' });
    delegation.bring(HEAD);
    expect(await delegation.next('takes', true)).toMatchObject({
      type: 'needs-admission',
      entry: { id, startedAt: 0, fence: 0, host: '' },
    });
  });

  test('ignores a wake-up with another fence, or for a begun entry (DELEGATION-3)', async () => {
    const { delegation, begun } = setUp();
    delegation.bring({ ...STARTED, fence: '6' });
    expect(await delegation.next('takes', false)).toEqual({ type: 'empty' });
    begun.add(id);
    delegation.bring(STARTED);
    expect(await delegation.next('takes', false)).toEqual({ type: 'empty' });
  });

  test('ignores the late wake-up of a taken entry, but keeps the next one (DELEGATION-1)', async () => {
    const { delegation } = setUp();
    delegation.bring(STARTED);
    delegation.started({ id });
    expect(await delegation.next('takes', false)).toEqual({ type: 'empty' });
    delegation.bring(STARTED);
    expect(await delegation.next('takes', false)).toEqual({ type: 'empty' });
    delegation.bring({ ...STARTED, id: next });
    delegation.started({ id });
    expect(await delegation.next('takes', false)).toMatchObject({ entry: { id: next } });
  });

  test('drops an entry from a wake-up when Redis came back with other data', async () => {
    const { delegation } = setUp();
    delegation.bring(STARTED);
    delegation.forget();
    expect(await delegation.next('takes', false)).toEqual({ type: 'empty' });
  });

  test('is withdrawn once, with the entry that was started before (DELEGATION-2)', async () => {
    const { delegation, withdraw } = setUp();
    withdraw.mockResolvedValue({ type: 'running', entry: { id } });
    expect(await delegation.withdraw()).toEqual({ type: 'empty' });
    delegation.mayBeStored();
    expect(await delegation.withdraw()).toEqual({ type: 'running', entry: { id } });
    expect(await delegation.withdraw()).toEqual({ type: 'empty' });
    expect(withdraw).toHaveBeenCalledTimes(1);
  });

  test('is never withdrawn under rules, where `submit` starts nothing', async () => {
    const { delegation, withdraw } = setUp('digest');
    delegation.mayBeStored();
    expect(await delegation.withdraw()).toEqual({ type: 'empty' });
    expect(withdraw).not.toHaveBeenCalled();
  });

  test('returns an unstarted entry only to a host that takes and decides about entries', async () => {
    const { delegation } = setUp();
    for (const [how, decides] of [
      ['takes', false],
      ['not-now', true],
      ['ends', true],
    ] as const) {
      delegation.bring(HEAD);
      expect(await delegation.next(how, decides)).toEqual({ type: 'empty' });
    }
  });
});
