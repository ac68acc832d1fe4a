import { sessionSpecSchema } from '@shellfleet/protocol';
import { beforeEach, describe, expect, test, vi } from 'vitest';

const staged = vi.hoisted(() => ({
  isAsking: true,
  released: [] as unknown[],
  calls: [] as string[],
  found: undefined as unknown,
  grant: undefined as unknown,
}));
vi.mock('./opened-grants.ts', () => ({
  OpenedGrants: class {
    open = () => staged.grant;
  },
}));
vi.mock('@shellfleet/mailbox', async (original) => ({
  ...(await original<object>()),
  retryWhileRedisIsDown: (call: () => Promise<unknown>) => call(),
  isAsking: async () => staged.isAsking,
  findAnswer: async () => {
    staged.calls.push('find');
    return staged.found;
  },
  askApproval: async () => void staged.calls.push('ask'),
  answerHeld: async (_redis: unknown, { session }: { session: string }, entryId: string, answer: unknown) => {
    staged.released.push([session, entryId, answer]);
  },
}));
const { HostApprovals } = await import('./host-approvals.ts');

const warn = vi.fn();
const approvals = new HostApprovals({
  ...{ redis: {}, namespace: 'n', hostId: 'h', sealer: { digest: (text: string) => `k.${text}` }, jobs: {}, audit: {} },
  ...{ logger: { warn }, check: async () => undefined, mostPending: 1, signal: new AbortController().signal },
} as never);
const QUESTION = {
  ...{ tenant: 't', session: 's', generation: 'g', entryId: 'e', epoch: 1, opens: false },
  ...{ payload: { type: 'restart' }, spec: sessionSpecSchema.parse({}), attempt: { number: 1 } },
  wider: { refusal: undefined, sandbox: undefined },
} as const;
const round: unknown[] = [];
round.push(round);

beforeEach(() => {
  Object.assign(staged, { isAsking: true, released: [], calls: [] });
  warn.mockClear();
});

describe('the approvals of a host', () => {
  // HOST-APPROVALS-3
  test('release an entry at once if its answer came before its hold', async () => {
    staged.isAsking = false;
    await approvals.held(QUESTION as never);
    expect(staged.released).toEqual([['s', 'e', { type: 'release' }]]);
  });

  test('do not release a held entry whose question is still open', async () => {
    await approvals.held(QUESTION as never);
    expect(staged.released).toEqual([]);
  });

  // S3-05
  test('deny a question that cannot be written as JSON', async () => {
    const asked = { reason: 'it asks', matchedRules: round };
    const found = await approvals.find(QUESTION as never, asked, () => true);
    expect(found).toEqual({ type: 'denied', reason: 'it cannot be written as a key for its answer' });
    const added = await approvals.ask(QUESTION as never, asked, { value: (value) => value });
    expect(added).toEqual({ type: 'refused', reason: 'it asks; it cannot be written as a key' });
    // Redis got no call, and each failure was logged.
    expect(staged.calls).toEqual([]);
    expect(warn.mock.calls).toEqual([1, 2].map(() => [{ err: expect.any(Error) }, 'approvals.unbound']));
  });

  test("apply a session's grant for a directory to covered operations under the same rules", async () => {
    const bound = { hash: 'h', binding: 'b', under: 'these rules' };
    const directories = [{ id: 'g', sealed: '' }];
    staged.found = { at: 1, unapplied: 0, grant: undefined, end: undefined, prefixes: [], directories };
    const given = { scope: 'session', question: { covers: { pattern: ['files.write', '/a'], under: 'these rules' } } };
    const find = async (grant: unknown, isCovered = true) => {
      staged.grant = grant;
      const asked = { reason: 'it asks', covers: { pattern: ['files.write', '/a/b'], isCoveredBy: () => isCovered } };
      return (await approvals.findFor(QUESTION as never, bound, asked as never, () => true)).type;
    };
    expect(await find(given)).toBe('granted');
    expect(await find(given, false)).toBe('open');
    expect(await find({ ...given, scope: 'command' })).toBe('open');
    const elsewhere = { ...given, question: { covers: { ...given.question.covers, under: 'other rules' } } };
    expect(await find(elsewhere)).toBe('open');
  });
});
