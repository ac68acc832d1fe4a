import {
  newSessionJob,
  type PlacementClass,
  placementClass,
  type SessionJob,
  type SessionJobs,
  toPlacement,
} from '@shellfleet/placement';
import { fleetKeys, type PolicyName, type SessionSpec, sessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { createSealer, createSealKey } from '@shellfleet/sealing';
import { pino } from 'pino';
import { afterEach, beforeEach, vi } from 'vitest';
import { ADMIT_EVERYTHING, type Admission } from '../src/admission/admission.ts';
import { StartsUnderWay } from '../src/approvals/starts-under-way.ts';
import { NO_AUDIT } from '../src/audit/audit.ts';
import { readConfig } from '../src/config/config.ts';
import { HostMemory } from '../src/host/host-memory.ts';
import { TenantUses } from '../src/host/tenant-use.ts';
import type { BegunId, Journal } from '../src/journal/journal.ts';
import type { Lease } from '../src/lease/leases.ts';
import { RecentLines } from '../src/log/recent-lines.ts';
import type { OverflowLogs } from '../src/overflow-log/overflow-logs.ts';
import { RunningEntries } from '../src/run/entry-run.ts';
import type { SessionHost } from '../src/run/host-services.ts';
import { HostedSession } from '../src/session/hosted-session.ts';
import { FakeMailbox } from './fake-mailbox.ts';
import { FakeSandbox, FakeSandboxes } from './fake-sandbox.ts';
import { staged } from './staged-mailbox.ts';

// A session with a mailbox, a lease and sandboxes in memory; everything between them is real. A test that imports this
// mocks `@shellfleet/mailbox` with `inMemory`, and `connect-shell.ts`.

export const HOST = 'host-1';
const keys = sessionKeys('ns', 't', 's');
const ref = { namespace: 'ns', tenant: 't', session: 's' };
const sealer = createSealer([createSealKey()]);
export const MARK = `1.${sealer.keyIds[0]}`;
export const classOf = (policy: PolicyName) => placementClass({ policy, sealedWith: MARK });

class FakeJournal implements Journal {
  readonly begun = new Set<string>();
  knows({ id }: BegunId): boolean {
    return this.begun.has(id);
  }
  record({ id }: BegunId): void {
    this.begun.add(id);
  }
  close(): void {}
}

class FakeLease implements Lease {
  readonly job: SessionJob = { ...ref, placementClass: 'docker' };
  isHeld = true;
  ended = false;
  lose = () => {};
  held(): boolean {
    return this.isHeld && !this.ended;
  }
  own(): void {}
  end(): void {
    this.ended = true;
  }
}

/** Returns the job of a session, as the queue of its policy holds it. */
export function jobFor(spec: SessionSpec): SessionJob {
  const placement = toPlacement(sessionSpecSchema.parse(spec), MARK);
  return { ...newSessionJob(ref, 'one', placement), placementClass: placementClass(placement) };
}

export function open(
  spec: SessionSpec = {},
  {
    job = jobFor(spec),
    offers = [classOf('docker'), classOf('kubernetes')],
    admission = ADMIT_EVERYTHING,
    isTracing = false,
    limitOpening = (_policy, work) => work(),
  }: {
    job?: SessionJob;
    offers?: PlacementClass[];
    admission?: Admission;
    isTracing?: boolean;
    limitOpening?: SessionHost['limitOpening'];
  } = {},
) {
  const mailbox = new FakeMailbox(keys, sealer, spec);
  staged.mailbox = mailbox;
  const sandboxes = new FakeSandboxes();
  const lease = new FakeLease();
  const jobs = {
    acquire: () => mailbox.functions.acquire({} as never, {} as never, {} as never, HOST, 1),
    remove: vi.fn(async () => {}),
    ensure: vi.fn(async () => {}),
    putBack: vi.fn(async () => {}),
  };
  const host = { takesNew: true };
  const journal = new FakeJournal();
  const log = { append: async () => {}, async *restore() {} };
  const session = new HostedSession(job, {
    offers: (name) => offers.includes(name),
    serves: async () => true,
    batchDirectory: 'unused',
    ...{ hostId: HOST, boot: 'boot-1', machine: 'm', version: '0.0.0', namespace: 'ns', fleet: fleetKeys('ns') },
    ...{ settings: readConfig({}), connected: {} as never, sealer, sandboxes },
    // No output is restored.
    redis: { xrangeBuffer: async () => [] } as never,
    jobs: jobs as unknown as SessionJobs,
    leases: {
      ...{ size: 1, lost: 0 },
      add: (_job, _lockMs, onLost) => {
        lease.lose = onLost;
        return lease;
      },
      renew: async () => {},
      renewDue: async () => {},
    },
    takesNew: () => host.takesNew,
    mostIdleMs: () => Number.POSITIVE_INFINITY,
    uses: new TenantUses(),
    limitOpening,
    pools: { take: async () => ({ type: 'cold', reason: 'no-pool' }), tend() {} },
    onHostMemory: () => {},
    hostMemory: new HostMemory(),
    overflowLogs: { ofCommand: () => log } as unknown as OverflowLogs,
    kept: {} as never,
    hostEntries: new RunningEntries(),
    journal,
    redisLosses: { mayHaveHappened: () => false },
    audit: NO_AUDIT,
    hostAdmission: admission,
    approvals: { starts: new StartsUnderWay() } as never,
    isTracing,
    logger: pino({ level: 'silent' }),
    recentLines: new RecentLines('boot-1'),
    sinks: [],
  });
  const keeper = () => sandboxes.made.at(-1)!.keeper;
  return { mailbox, sandboxes, lease, jobs, journal, session, keeper, host };
}

/** Prepares the state that an earlier process of the worker left: a living sandbox whose shell runs an entry. */
export function adoptable(
  { mailbox }: ReturnType<typeof open>,
  entry: { id: string; cancelReason?: string; host?: string; retry?: 'idempotent' },
) {
  const sandbox = new FakeSandbox('living', ref);
  const { id, cancelReason, host = HOST, retry } = entry;
  mailbox.submit({ id, script: 'hold', ...(retry && { retry }) });
  mailbox.running = { ...mailbox.waiting.shift()!, startedAt: 2, host, ...(cancelReason && { cancelReason }) };
  mailbox.shell = { host: HOST, sandbox: sandbox.id };
  mailbox.epoch = 1;
  return sandbox;
}

export const outcomes = ({ finished }: FakeMailbox) => finished.map(({ id, outcome }) => `${id} ${outcome}`);
export const running: Promise<unknown>[] = [];
const sessions: HostedSession[] = [];
export function serve(it: ReturnType<typeof open>, found?: FakeSandbox): Promise<'ended' | 'failed'> {
  const served = it.session.serve(found);
  running.push(served);
  sessions.push(it.session);
  return served;
}

beforeEach(() => {
  running.length = 0;
  sessions.length = 0;
});
afterEach(async () => {
  for (const session of sessions) session.stop('end');
  await Promise.all(running);
});
