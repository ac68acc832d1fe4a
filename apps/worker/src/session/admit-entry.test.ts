import { beforeEach, expect, test, vi } from 'vitest';

const staged = { cleared: [] as unknown[][], reply: { type: 'too-late' } as object };
vi.mock('../run/run-entry.ts', () => ({ openSignedPayload: () => ({ payload: {}, signature: undefined }) }));
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

// A host that stood still in between must not start a command on an approval that was revoked meanwhile.
test('an entry on an approval is started until the time of its verdict, and decided again after it', async () => {
  expect(await admit({ type: 'admit', startBy: 123 })).toEqual({
    next: { type: 'decide', entry: ENTRY, opened: false },
    cleared: [['e', 'd', 123]],
    admitted: ['set', 'clear'],
  });
});

test('an entry that the rules admit has no such time, and stays admitted once it is started', async () => {
  staged.reply = { type: 'started', entry: ENTRY };
  const started = { next: { type: 'taken', entry: ENTRY }, cleared: [['e', 'd', undefined]], admitted: ['set'] };
  expect(await admit({ type: 'admit' })).toEqual(started);
});

test('an entry whose lease has lapsed is not started', async () => {
  const unstarted = { next: { type: 'look' }, cleared: [], admitted: ['set', 'clear'] };
  expect(await admit({ type: 'admit' }, false)).toEqual(unstarted);
});
