import { beforeEach, describe, expect, test, vi } from 'vitest';

const staged = { cleared: [] as unknown[][], reply: { type: 'too-late' } as object };
vi.mock('../run/open-payload.ts', () => ({ openPayload: () => ({ payload: {}, signature: undefined }) }));
vi.mock('./audit-verdict.ts', () => ({ auditVerdict: async (verdict: unknown) => verdict, noteHeld() {} }));
vi.mock('./session-parts.ts', () => ({ aboutSession: () => ({}) }));
const { admitEntry } = await import('./admit-entry.ts');

const once = {
  clear: async (...args: unknown[]) => {
    staged.cleared.push(args);
    return staged.reply;
  },
};
const mailbox = { retry: (call: (calls: typeof once) => unknown) => call(once) };
const ENTRY = { id: 'e', payload: 'p', first: undefined } as never;

async function admit(verdict: object, holdsLease = true) {
  const admitted: string[] = [];
  const approvals = { starts: { during: (_entry: unknown, start: () => unknown) => start() } };
  const parts = {
    context: { mailbox, approvals },
    shell: { ready: true },
    admission: { digest: 'd', decide: async () => verdict },
    lease: { held: () => holdsLease },
    admitted: { set: () => admitted.push('set'), clear: () => admitted.push('clear') },
  };
  const next = await admitEntry(ENTRY, false, parts as never);
  return { next, cleared: staged.cleared, admitted };
}

beforeEach(() => {
  staged.cleared = [];
  staged.reply = { type: 'too-late' };
});

describe('the start of a decided entry', () => {
  // A host that stood still in between must not start a command on an approval that was revoked.
  test('follows an approval until its deadline, and requires a new decision after that', async () => {
    expect(await admit({ type: 'admit', startBy: 123 })).toEqual({
      next: { type: 'decide', entry: ENTRY, opened: false },
      cleared: [['e', 'd', 123]],
      admitted: ['set', 'clear'],
    });
  });

  test('has no time limit when the rules admit the entry', async () => {
    staged.reply = { type: 'started', entry: ENTRY };
    const started = { next: { type: 'taken', entry: ENTRY }, cleared: [['e', 'd', undefined]], admitted: ['set'] };
    expect(await admit({ type: 'admit' })).toEqual(started);
  });

  test('does not happen when the lease has lapsed', async () => {
    const unstarted = { next: { type: 'look' }, cleared: [], admitted: ['set', 'clear'] };
    expect(await admit({ type: 'admit' }, false)).toEqual(unstarted);
  });
});
