import { beforeEach, describe, expect, test, vi } from 'vitest';

const staged = vi.hoisted(() => ({
  ...{ type: 'approve', asFirst: false },
  ...{ decided: [] as string[], away: [] as string[], told: [] as string[] },
}));
vi.mock('@shellfleet/mailbox', async (original) => ({
  ...(await original<object>()),
  readDecided: async () =>
    staged.decided.map((session) => ({
      ...{ type: staged.type, question: 'q', member: session },
      asker: { session, generation: 'g', entryId: 'e' },
    })),
  answerHeld: async (_redis: unknown, { session }: { session: string }) => {
    if (staged.away.includes(session)) throw new Error('Redis is away');
    staged.told.push(session);
    if (staged.type === 'approve') return { type: 'released', needsJob: false };
    return { type: 'denied', event: '1-0', inbox: 'i', asFirst: staged.asFirst, needsJob: false, behind: [] };
  },
  notify: async () => {},
  forgetDecided: async (_redis: unknown, _keys: unknown, members: string[]) => {
    staged.decided = staged.decided.filter((member) => !members.includes(member));
  },
}));
const { answerHeldEntries } = await import('./answer-held-entries.ts');

const warned = vi.fn();
const heldEnded = vi.fn();
const tell = () => {
  const deps = { redis: {}, jobs: {}, audit: { note() {} }, metrics: { heldEnded }, logger: { warn: warned } };
  return answerHeldEntries({ namespace: 'n', tenant: 't' } as never, deps as never);
};

beforeEach(() => {
  Object.assign(staged, { type: 'approve', asFirst: false, decided: ['a', 'b', 'c'], away: [], told: [] });
  warned.mockClear();
  heldEnded.mockClear();
});

describe('the delivery of decisions', () => {
  test('answers the entry of every decision once, and forgets the decision', async () => {
    await tell();
    expect(staged).toMatchObject({ decided: [], away: [], told: ['a', 'b', 'c'] });
  });

  test('logs a failed delivery, and repeats it in the next round', async () => {
    staged.away = ['a'];
    await tell();
    expect({ decided: staged.decided, told: staged.told }).toEqual({ decided: ['a'], told: ['b', 'c'] });
    expect(warned).toHaveBeenCalledWith({ err: expect.any(Error) }, 'approvals.failed');
    staged.away = [];
    await tell();
    expect({ decided: staged.decided, told: staged.told }).toEqual({ decided: [], told: ['b', 'c', 'a'] });
  });

  test.each([
    ['deny', { outcome: 'denial', reason: 'approver' }],
    ['expire', { outcome: 'error', error: { code: 'APPROVAL_EXPIRED' } }],
  ])('counts each command that ends without a start: %s', async (type, result) => {
    Object.assign(staged, { type, decided: ['a', 'b'] });
    await tell();
    expect(heldEnded.mock.calls).toMatchObject([[result], [result]]);
  });

  test.each([{ type: 'approve' }, { type: 'deny', asFirst: true }])(
    'counts no command that is released or ends as its first attempt: %o',
    async (decision) => {
      Object.assign(staged, decision);
      await tell();
      expect(staged.told).toHaveLength(3);
      expect(heldEnded).not.toHaveBeenCalled();
    },
  );
});
