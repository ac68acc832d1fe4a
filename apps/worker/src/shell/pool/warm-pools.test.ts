import { sessionSpecSchema } from '@shellfleet/protocol';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MissingImage, type SpareKey, type SpareSandbox } from '../../sandbox/sandbox.ts';
import { type PoolRoom, WarmPools } from './warm-pools.ts';
import { WarmShell } from './warm-shell.ts';

const SESSION = { namespace: 'n', tenant: 't', session: 's' };
const SPEC = sessionSpecSchema.parse({});

let room: PoolRoom;
let key: SpareKey;
let made: (SpareSandbox & { removed: boolean })[];
let create: ReturnType<typeof vi.fn<() => Promise<SpareSandbox>>>;
let pull: ReturnType<typeof vi.fn<(image: string) => Promise<void>>>;
let pools: WarmPools;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(WarmShell, 'start').mockImplementation(
    async () => ({ connected: true, gone: new Promise(() => {}), close() {} }) as unknown as WarmShell,
  );
  room = { most: 10, fillTo: 10 };
  key = { key: 'one' };
  made = [];
  create = vi.fn(async () => spare());
  pull = vi.fn(async () => {});
});
afterEach(async () => {
  await pools.close();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function spare(): SpareSandbox {
  const died = Promise.withResolvers<never>();
  const removal = Promise.withResolvers<void>();
  const sandbox = {
    removal: removal.promise,
    ...{ id: String(made.length), key: 'key' in key ? key.key : '', removed: false, died: died.promise },
    assign: async (session: typeof SESSION) => ({ ...sandbox, session }),
    remove: async () => {
      sandbox.removed = true;
      removal.resolve();
    },
  };
  made.push(sandbox as never);
  return sandbox as never;
}

/** Waits as the start of a Pod for which the cluster has no room. */
async function pendingUntilRemoved(sandbox: object): Promise<never> {
  await (sandbox as { removal: Promise<void> }).removal;
  throw new Error('it was removed');
}

async function start(min: number, max: number, policy: 'docker' | 'kubernetes' = 'docker'): Promise<void> {
  pools = new WarmPools({
    settings: [{ image: 'default', policy, limits: {}, network: 'restricted', min, max }],
    sandboxes: { spares: { keyOf: async () => key, create }, pull, problem: () => undefined },
    limitOpening: (_policy, open) => open(),
    room: () => room,
    logger: pino({ level: 'silent' }),
  });
  pools.start();
  await vi.advanceTimersByTimeAsync(0);
}
const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const ready = () => pools.describe()[0]?.ready;
const take = async () => (await pools.take(SESSION, SPEC)).type;

describe('a pool of ready sandboxes', () => {
  test('grows with the sessions that ask, and shrinks half a minute later', async () => {
    await start(1, 3);
    expect(ready()).toBe(1);
    expect([await take(), await take(), await take(), await take()]).toEqual(['warm', 'cold', 'cold', 'cold']);
    await later(2_000);
    expect(ready()).toBe(3);
    await later(31_000);
    expect([ready(), made.filter(({ removed }) => removed).length]).toEqual([1, 2]);
    expect(pools.describe()[0]).toMatchObject({ asked: 4, warm: 1, hitRate: 0.25, problem: null });
  });

  test('is not filled at the moment in which sessions ask', async () => {
    await start(2, 2);
    await later(900);
    await take();
    await later(200);
    expect(ready()).toBe(1);
    await later(1_000);
    expect(ready()).toBe(2);
  });

  test('gives its oldest sandboxes back when the host needs their slots', async () => {
    await start(3, 3);
    room = { most: 1, fillTo: 0 };
    await later(1_000);
    expect(made.map(({ removed }) => removed)).toEqual([true, true, false]);
    expect(ready()).toBe(1);
  });

  test('pauses longer after each failure, and says why', async () => {
    create.mockRejectedValue(new Error('no space'));
    await start(1, 1);
    await later(62_000);
    // At 0, 1, 3, 7, 15, 31 s. The last pause is a minute.
    expect([create.mock.calls.length, pools.describe()[0]?.problem]).toEqual([6, 'no space']);
    expect(pools.warnings()).toEqual(['The pool of the image default has 0 of 1 sandboxes ready: no space.']);
    create.mockImplementation(async () => spare());
    await later(5_000);
    expect([ready(), pools.describe()[0]?.problem, pools.warnings()]).toEqual([1, null, []]);
  });

  test('pulls a missing image once, however long that takes', async () => {
    const pulled = Promise.withResolvers<void>();
    create.mockRejectedValueOnce(new MissingImage('busybox:latest'));
    pull.mockReturnValue(pulled.promise);
    await start(1, 1);
    await later(120_000);
    expect([pull.mock.calls, create.mock.calls.length]).toEqual([[['busybox:latest']], 1]);
    pulled.resolve();
    await later(1_000);
    expect(ready()).toBe(1);
  });

  test('replaces sandboxes that a session could not have any more', async () => {
    await start(2, 2);
    key = { key: 'two' };
    expect(await take()).toBe('cold');
    await later(7_000);
    expect(made.map(({ key: of, removed }) => [of, removed])).toEqual([
      ...[['one', true] as const, ['one', true] as const],
      ...[['two', false] as const, ['two', false] as const],
    ]);
    expect(await take()).toBe('warm');
  });

  test('has none for a session that needs a sandbox of its own', async () => {
    await start(1, 1);
    key = { needsOwn: 'user' };
    expect(await pools.take(SESSION, SPEC)).toEqual({ type: 'cold', reason: 'user' });
    expect(await pools.take(SESSION, sessionSpecSchema.parse({ policy: 'host' }))).toEqual({
      ...{ type: 'cold', reason: 'no-pool' },
    });
    expect(ready()).toBe(1);
  });

  test('says nothing of a failure when no sandbox is wanted any more', async () => {
    pull.mockRejectedValue(new Error('It has no such image.'));
    create.mockRejectedValue(new MissingImage('nosuch:1'));
    await start(0, 1);
    await take();
    await later(5_000);
    expect(pools.warnings()).toEqual([
      'The pool of the image default has 0 of 1 sandboxes ready: It has no such image.',
    ]);
    await later(30_000);
    expect(pools.warnings()).toEqual([]);
  });

  test('removes its sandboxes when the worker stops', async () => {
    await start(2, 2);
    await pools.close();
    expect(made.map(({ removed }) => removed)).toEqual([true, true]);
  });
});

describe('a pool of ready Pods', () => {
  test('waits for no Pod that is pending, and has at most eight of them', async () => {
    room = { most: 100, fillTo: 100 };
    vi.mocked(WarmShell.start).mockImplementationOnce(pendingUntilRemoved);
    await start(3, 20, 'kubernetes');
    expect([ready(), made.length]).toEqual([2, 3]);
    expect((await pools.take(SESSION, sessionSpecSchema.parse({ policy: 'kubernetes' }))).type).toBe('warm');
    await later(1_000);
    expect([ready(), made.length]).toEqual([2, 4]);
    vi.mocked(WarmShell.start).mockImplementation(pendingUntilRemoved);
    for (let asked = 0; asked < 20; asked += 1)
      await pools.take(SESSION, sessionSpecSchema.parse({ policy: 'kubernetes' }));
    await later(1_000);
    expect(made.length).toBe(4 + 7);
  });

  test('is of no use to a session of another policy', async () => {
    await start(1, 1, 'kubernetes');
    expect(await pools.take(SESSION, SPEC)).toEqual({ type: 'cold', reason: 'no-pool' });
  });

  test('removes Pods that are pending when the worker ends', async () => {
    vi.mocked(WarmShell.start).mockImplementation(pendingUntilRemoved);
    await start(2, 2, 'kubernetes');
    await pools.close();
    expect([ready(), made.map(({ removed }) => removed)]).toEqual([0, [true, true]]);
    expect(pools.describe()[0]?.problem).toBe(null);
  });
});
