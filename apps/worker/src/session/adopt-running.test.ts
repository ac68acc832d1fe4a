import type { Adopted, Entry } from '@shellfleet/mailbox';
import { sessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { pino } from 'pino';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeSandbox } from '../../test-support/fake-sandbox.ts';
import { adoptRunning } from './adopt-running.ts';

const stage = vi.hoisted(() => ({ failed: [] as unknown[] }));
vi.mock('../run/run-entry.ts', async (original) => ({
  ...(await original<object>()),
  finishLost: async ({ id }: Entry, reason: string) => `lost ${id}: ${reason}`,
  finishNeverBegun: async ({ id }: Entry) => `${id} never began`,
}));

const ref = { namespace: 'ns', tenant: 't', session: 's' };
const keys = sessionKeys('ns', 't', 's');
const HERE = 'here';
const AWAY = 'away';

beforeEach(() => {
  stage.failed = [];
});

/** Takes over a session whose living keeper reports `keeperRan` as its last entry, and has begun `keeperCalled`. */
function open({
  keeperRan,
  keeperCalled,
  onHostLoss = 'fail' as 'fail' | 'recreate',
  began = [],
  isLeft = false,
}: {
  keeperRan?: string;
  keeperCalled?: string;
  /** Ids in the journal of the host. */
  began?: string[];
  onHostLoss?: 'fail' | 'recreate';
  /** Whether the shell, which any worker can reach, is left meanwhile. */
  isLeft?: boolean;
} = {}) {
  const steps: string[] = [];
  const note = (step: string) => void steps.push(step);
  const announcements = {
    adopted: async () => note('announce adopted'),
    lost: async ({ reason }: { reason: string }) => note(`announce lost: ${reason}`),
  };
  const shell = {
    adopt: async () => {
      if (keeperRan === 'no answer') throw new Error('no answer');
      return { entryId: keeperRan ?? null };
    },
    abandon: async () => note('abandon'),
    live: { files: { hasBegun: async (id: string) => id === keeperCalled } },
  };
  const owner = { keys, host: HERE, fence: 2 };
  const context = {
    ...{ owner, mailbox: { owner, rerun: async () => note('rerun') ?? { type: 'restarted' } } },
    journal: { knows: ({ id }: { id: string }) => began.includes(id) },
    spec: sessionSpecSchema.parse({ onHostLoss }),
    logger: pino({ level: 'silent' }),
    signal: new AbortController().signal,
  };
  const admitted = { clear() {} };
  const movable = isLeft ? { isMovable: true, hosting: { lost: AbortSignal.abort() } } : {};
  const parts = { announcements, shell, context, admission: { digest: '' }, admitted, ...movable } as never;
  const run = async (adopted: Partial<Adopted>, found?: FakeSandbox) => {
    const all = { type: 'adopted', phase: 'open', epoch: 1, epochBase: 0, preparedEpoch: 1, waiting: 3, ...adopted };
    const { isAdopted, next, failing } = await adoptRunning(all as Adopted, found, parts);
    if (isAdopted) note('serve');
    if (next.type === 'run') note(`${next.from} ${next.entry.id}`);
    else if (next.type === 'start')
      note(`start ${next.entry.id}, else ${await next.orElse(next.entry, context as never)}`);
    else if (next.type === 'end') note(`${await next.how(next.entry, context as never)}`);
    else expect(next).toEqual({ type: 'look' });
    if (failing !== undefined) stage.failed.push([failing.error.code, failing.most]);
    return steps;
  };
  return { run };
}

const entry = (host: string, retry: Entry['retry'] = 'never') => ({ id: 'e', host, retry }) as Entry;
const living = () => new FakeSandbox('living', ref);
const shellHere = { host: HERE, sandbox: 'living' };

describe('the adoption of a session', () => {
  test.each([
    ['an idle shell is adopted', undefined, undefined, ['announce adopted', 'serve']],
    ['the entry that its keeper runs is resumed', 'e', HERE, ['announce adopted', 'serve', 'resume e']],
    [
      'an entry that this host took and its keeper never began is started',
      'other',
      HERE,
      ['announce adopted', 'serve', 'start e, else e never began'],
    ],
    [
      'an entry that another host took may have run there, and is lost',
      'other',
      AWAY,
      ['announce adopted', 'serve', 'lost e: host-lost'],
    ],
  ])('adopts a living sandbox: %s', async (_title, keeperRan, startedOn, steps) => {
    const running = startedOn === undefined ? {} : { running: entry(startedOn) };
    const { run } = open(keeperRan === undefined ? {} : { keeperRan });
    expect(await run({ shell: shellHere, ...running }, living())).toEqual(steps);
    expect(stage.failed).toEqual([]);
  });

  test.each([
    ['its keeper has begun is resumed', 'e', HERE, 'resume e'],
    ['its keeper never began is started', 'other', HERE, 'start e, else e never began'],
    ['another host took is lost', 'other', AWAY, 'lost e: host-lost'],
  ])('adopts a living sandbox: a file operation that %s', async (_title, keeperCalled, startedOn, step) => {
    const { run } = open({ keeperRan: 'a command', keeperCalled });
    const running = { ...entry(startedOn), kind: 'file' as const };
    expect(await run({ shell: shellHere, running }, living())).toEqual(['announce adopted', 'serve', step]);
  });

  test.each([
    ['that began is lost', HERE, true, 'lost e: container-removed'],
    ['that never began is started', HERE, false, 'start e, else e never began'],
    ['that another host started is lost', AWAY, false, 'lost e: host-lost'],
  ])('adopts a living sandbox: an entry in the wider sandbox %s (ATTEMPT-1)', async (_title, host, began, step) => {
    // The keeper of the session's own sandbox has begun the first attempt.
    const { run } = open({ keeperRan: 'e', began: began ? ['e.2'] : ['e'] });
    const running = { ...entry(host, 'idempotent'), first: 'sealed' };
    expect(await run({ shell: shellHere, running }, living())).toEqual(['announce adopted', 'serve', step]);
  });

  test('ends the sandbox of an unresponsive keeper, and continues with the waiting entries', async () => {
    const { run } = open({ keeperRan: 'no answer' });
    expect(await run({ shell: shellHere, running: entry(HERE) }, living())).toEqual([
      'abandon',
      'announce lost: container-removed',
      'lost e: container-removed',
    ]);
    expect(stage.failed).toEqual([]);
  });

  test('leaves what became of a shell that was left meanwhile to the next owner', async () => {
    const { run } = open({ keeperRan: 'no answer', isLeft: true });
    expect(await run({ shell: shellHere, running: entry(HERE, 'idempotent') }, living())).toEqual(['abandon']);
  });

  test('removes a sandbox whose shell was never announced as ready', async () => {
    const { run } = open();
    const found = living();
    expect(await run({ epoch: 0 }, found)).toEqual([]);
    expect(found.removed).toBe(true);
  });

  test('reruns an idempotent entry on a fresh shell, without serving others', async () => {
    const { run } = open();
    expect(await run({ shell: shellHere, running: entry(HERE, 'idempotent') })).toEqual([
      'announce lost: container-removed',
      'rerun',
      'start e, else lost e: container-removed',
    ]);
  });

  test('fails the entries that waited on a lost host if `onHostLoss` requests it', async () => {
    const shell = { host: AWAY, sandbox: 'far' };
    const steps = ['announce lost: host-lost', 'lost e: host-lost'];
    expect(await open().run({ shell, running: entry(AWAY) })).toEqual(steps);
    expect(stage.failed).toEqual([['SESSION_LOST', 3]]);
    stage.failed = [];
    expect(await open({ onHostLoss: 'recreate' }).run({ shell, running: entry(AWAY) })).toEqual(steps);
    expect(stage.failed).toEqual([]);
  });
});
