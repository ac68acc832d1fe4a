import { beforeEach, describe, expect, test, vi } from 'vitest';

const staged = vi.hoisted(() => ({ decided: [] as string[], away: [] as string[], told: [] as string[] }));
vi.mock('@shellfleet/mailbox', async (original) => ({
  ...(await original<object>()),
  readDecided: async () =>
    staged.decided.map((session) => ({
      ...{ type: 'approve', question: 'q', member: session },
      asker: { session, generation: 'g', entryId: 'e' },
    })),
  answerHeld: async (_redis: unknown, { session }: { session: string }) => {
    if (staged.away.includes(session)) throw new Error('Redis is away');
    staged.told.push(session);
    return { type: 'released', needsJob: false };
  },
  forgetDecided: async (_redis: unknown, _keys: unknown, members: string[]) => {
    staged.decided = staged.decided.filter((member) => !members.includes(member));
  },
}));
const { answerHeldEntries } = await import('./answer-held-entries.ts');

const warned = vi.fn();
const tell = () => {
  const deps = { redis: {}, jobs: {}, audit: { note() {} }, logger: { warn: warned } };
  return answerHeldEntries({ namespace: 'n', tenant: 't' } as never, deps as never);
};

beforeEach(() => {
  Object.assign(staged, { decided: ['a', 'b', 'c'], away: [], told: [] });
  warned.mockClear();
});

describe('the delivery of decisions', () => {
  test('answers the entry of every decision once, and forgets the decision', async () => {
    await tell();
    expect(staged).toEqual({ decided: [], away: [], told: ['a', 'b', 'c'] });
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
});
