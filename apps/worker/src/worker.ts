import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Notifier } from '@shellfleet/concurrency';
import { createSessionJobs, offeredClasses, type SessionJob } from '@shellfleet/placement';
import type { WiderSettings } from '@shellfleet/policy';
import {
  fleetKeys,
  type HostOffer,
  hostOfferSchema,
  isShellfleetError,
  LIMITS,
  PROTOCOL_VERSION,
  SCHEMA_VERSION,
  type ShellfleetError,
} from '@shellfleet/protocol';
import { type Connected, noteLoss, recordRetention, requireFleet } from '@shellfleet/redis';
import { createSealer, type Verifier } from '@shellfleet/sealing';
import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { ulid } from 'ulid';
import { ADMIT_EVERYTHING, type Admission } from './admission/admission.ts';
import type { Answers, Rules } from './admission/create-admission.ts';
import { Announcer } from './approvals/announce-questions.ts';
import { ANYONE_ANSWERS, type AnswerCheck } from './approvals/apply-answers.ts';
import { startApprovalsUpkeep } from './approvals/approvals-upkeep.ts';
import { HostApprovals } from './approvals/host-approvals.ts';
import type { Webhook } from './approvals/send-announcement.ts';
import { ToolApprovals } from './approvals/tool-approvals.ts';
import { anchorHeadsRegularly } from './audit/anchor-heads.ts';
import { type Audit, NO_AUDIT } from './audit/audit.ts';
import type { EgressSettings } from './egress/create-session-egress.ts';
import type { HostLog } from './host-log/host-log.ts';
import type { Journal } from './journal/journal.ts';
import type { RedisLosses } from './journal/redis-losses.ts';
import { claimHostId } from './lease/boot-claim.ts';
import { refuseOtherProtocol } from './lease/fleet-protocol.ts';
import { refuseOtherRetention } from './lease/fleet-retention.ts';
import { startHeartbeat } from './lease/heartbeat.ts';
import { createHeldTimes } from './lease/held-times.ts';
import { createLeases, LEASE_MS } from './lease/leases.ts';
import { lossOf, Settling } from './lease/settling.ts';
import { RunningEntries } from './run/running-entries.ts';
import { KeptSandboxes } from './sandbox/kept-sandboxes.ts';
import type { Sandboxes } from './sandbox/sandbox.ts';
import type { Stop } from './session/session-state.ts';
import type { Tool } from './tools/load-tools.ts';
import { createToolHost } from './tools/tool-host.ts';
import { startUpkeep } from './upkeep/upkeep.ts';
import { watchHosts } from './upkeep/watch-hosts.ts';
import { CanServe } from './worker/can-serve.ts';
import { watchDrainRequest } from './worker/drain-request.ts';
import { fetchSessions } from './worker/fetch-sessions.ts';
import { readHostCalls } from './worker/host-calls.ts';
import { type LeastFree, watchHostRoom } from './worker/host-room.ts';
import { HostedSessions } from './worker/hosted-sessions.ts';
import { requeueRegularly } from './worker/requeue-regularly.ts';
import { sweepLogsRegularly } from './worker/sweep-logs-regularly.ts';
import { type SweepTimes, sweepSandboxesRegularly } from './worker/sweep-sandboxes-regularly.ts';
import { takeBack } from './worker/take-back.ts';
import { subscribeToWakeUps } from './worker/wake-ups.ts';
import { watchOtherFleets } from './worker/watch-other-fleets.ts';

/** Duration of a lock that was just taken, before the session's own grace is known. */
const FIRST_LOCK_MS = LEASE_MS + 60_000;
const STALLED_INTERVAL_MS = 1_000;
/** For the removal of sandboxes that did not end within the grace. */
const DISCARD_MS = 5_000;
const UPKEEP_INTERVAL_MS = 2_000;
/** With the time for which a heartbeat counts, less than 5 s. */
const WATCH_INTERVAL_MS = 400;
/** Hosts that have a seal key may be restarting. */
const KEY_PATIENCE_MS = 15_000;
/** Longer than the interval at which producers note the sessions that they use, with a margin for a busy machine. */
const UPKEEP_QUIET_MS = 60_000;

export interface WorkerDeps {
  connected: Connected;
  /** Where Redis is, for messages. */
  place?: string;
  /** The keyspace of the fleet. */
  namespace: string;
  hostId: string;
  /** Names the machine (its state folder), which outlives a process. */
  machine: string;
  slots: number;
  policies: string[];
  tools?: { offered: readonly Tool[]; slots: number; env: Record<string, string> };
  /** What sessions may ask for, beside the policies. Default: what needs no risk taken. */
  allow?: HostOffer;
  defaultImage: string;
  version: string;
  sealKeys: readonly string[];
  /** Asks for signatures. Default: none are asked for. */
  verifier?: Verifier | undefined;
  sandboxes: Sandboxes;
  hostLog: HostLog;
  /** The ids that this host began. */
  journal: Journal;
  /** Default: as far as this process knows. */
  redisLosses?: RedisLosses;
  /** Default: nothing is written down. */
  audit?: Audit;
  /** How long the fleet keeps what has ended. */
  retentionMs: number;
  /** How long the reader that is attached to a command may read nothing while the command waits for it. */
  readerStallMs: number;
  /** What the proxies of sessions may let through. Default: nothing. */
  egress?: EgressSettings;
  /** What commands get that leave the sandbox of their session. Default: none leaves. */
  wider?: WiderSettings | undefined;
  /** What this host admits; `answers` are what persons have answered. Default: everything. */
  admission?: (answers: Answers) => Admission;
  /** Who may answer, how many questions of one tenant may be pending, and where they are announced. */
  approvals?: { check?: AnswerCheck; pendingPerTenant?: number; webhook?: Webhook | undefined };
  /** What the rules say about a call of a tool. Default: nothing is judged. */
  decideTool?: Rules['decideTool'];
  /** What the operator of this host should mend. */
  warnings?(): string[];
  logger: Logger;
  /** Another process acts as this host now. */
  onReplaced(): void;
  /** Redis has another fleet now: it was replaced, or emptied while no host of this one was up. The shells are to live on. */
  onOtherFleet(error: ShellfleetError): void;
  /** The disk and the memory that have to be free before it takes a session. Default: not measured. */
  room?: { stateFolder: string; least: LeastFree };
  /** When sandboxes that nobody owns are removed. Default: the usual times. */
  sweepTimes?: SweepTimes | undefined;
}

export interface Worker {
  readonly hostId: string;
  /**
   * Takes no new work and waits up to `graceMs` for the work that runs. `hand-over` leaves the shells alive for the next worker, `end` ends
   * them. Resolves with the number of sessions that ended and of those that did not.
   */
  close(how: Stop, graceMs: number): Promise<{ ended: number; left: number }>;
  /** What the host admits has changed: what waits is decided again. */
  admissionChanged(): void;
}

/** Starts the agent of a host: claims the host id, continues the sessions that it owned before, then serves sessions while it has slots. */
export async function createWorker(deps: WorkerDeps): Promise<Worker> {
  const { namespace, hostId, logger, sandboxes, hostLog, audit = NO_AUDIT } = deps;
  const { redis } = deps.connected;
  const fleet = fleetKeys(namespace);
  const claim = { hostId, machine: deps.machine, boot: ulid(), ttlMs: LEASE_MS };
  const sealer = createSealer(deps.sealKeys, { verifier: deps.verifier });
  await refuseOtherProtocol(redis, fleet, hostId);
  await refuseOtherRetention(redis, fleet, hostId, deps.retentionMs);
  await claimHostId(redis, namespace, claim);

  const host = { redis, fleet, hostId, boot: claim.boot, sealer, logger };
  const abilities = {
    policies: deps.policies,
    sealKeys: [...sealer.keyIds],
    schema: SCHEMA_VERSION,
    allow: deps.allow ?? hostOfferSchema.parse({}),
  };
  const offers = offeredClasses(abilities);
  const timing = { lockMs: FIRST_LOCK_MS, stalledIntervalMs: STALLED_INTERVAL_MS };
  const canServe = new CanServe({ ...host, namespace }, abilities.allow, deps.defaultImage);
  const serves = (job: SessionJob) => canServe.job(job);
  const jobs = await createSessionJobs({ ...host, offers, serves, ...timing });
  const leases = createLeases(jobs);
  const heldTimes = createHeldTimes();
  const stopping = new AbortController();
  const wakeUps = new Notifier();
  const { redisLosses = { mayHaveHappened: () => deps.connected.history.changes > 0 } } = deps;
  const room = deps.room && (await watchHostRoom({ ...deps.room, logger, onRoom: () => wakeUps.notify() }));
  /** Why this host takes no new session at present. */
  const problems = () => [sandboxes.problem(), room?.problem()].filter((problem) => problem !== undefined);
  const drainRequest = await watchDrainRequest({ ...host, onChange: () => onDrainChange() });
  const isDraining = () => stopping.signal.aborted || drainRequest.isMade;
  const takesNew = () => !isDraining() && problems().length === 0;
  const settling = new Settling({ redis, fleet, hostId, onSettled: () => wakeUps.notify() });
  const closed = new AbortController();
  const webhook = deps.approvals?.webhook;
  const announcer = webhook && new Announcer({ redis, fleet, sealer, logger, webhook });
  const approvals = new HostApprovals({
    ...{ ...host, namespace, jobs, audit },
    check: deps.approvals?.check ?? ANYONE_ANSWERS,
    mostPending: deps.approvals?.pendingPerTenant ?? LIMITS.pendingApprovals,
    onAsked: (tenant) => announcer?.asked(tenant),
    signal: closed.signal,
  });
  const hostEntries = new RunningEntries();
  const kept = new KeptSandboxes({ redis, fleet, hostId, sandboxes, logger });
  const sessions = new HostedSessions(
    {
      ...host,
      ...{
        jobs,
        leases,
        offers,
        serves: (spec) => canServe.spec(spec),
        sandboxes,
        hostLog,
        kept,
        journal: deps.journal,
        redisLosses,
        audit,
        readerStallMs: deps.readerStallMs,
      },
      egress: deps.egress ?? { hosts: [], privateAddresses: [] },
      wider: deps.wider,
      lockMs: FIRST_LOCK_MS,
      takesNew,
      limitOpening: pLimit(2 * availableParallelism()),
      hostEntries,
      ...{ admission: deps.admission?.(approvals) ?? ADMIT_EVERYTHING, approvals },
    },
    {
      stopping: stopping.signal,
      onEnded(heldMs) {
        heldTimes.record(heldMs);
        wakeUps.notify();
      },
    },
  );

  const otherFleets = await watchOtherFleets({ sandboxes, redis, namespace, logger });
  const heartbeat = await startHeartbeat({
    ...{ redis, fleet, claim, leases, logger },
    onReplaced: deps.onReplaced,
    async requireFleet(via) {
      await requireFleet(via, namespace, deps.place ?? 'its address').catch((error: unknown) => {
        if (isShellfleetError(error) && error.code === 'FLEET_CONFLICT') deps.onOtherFleet(error);
        throw error;
      });
    },
    beat: () => ({
      slots: deps.slots,
      free: Math.max(0, deps.slots - sessions.size),
      sessions: sessions.size,
      running: hostEntries.count,
      held: sessions.asking,
      ...abilities,
      version: deps.version,
      protocol: PROTOCOL_VERSION,
      boot: claim.boot,
      draining: isDraining(),
      problems: problems(),
      warnings: [...(deps.warnings?.() ?? []), ...(announcer?.warnings ?? []), ...otherFleets.warnings()],
      defaultImage: deps.defaultImage,
      heldMs: heldTimes.median(),
      retentionMs: deps.retentionMs,
    }),
  });
  // Once more, because another worker may have started at the same time: at least one of the two sees the heartbeat of the other.
  await refuseOtherRetention(redis, fleet, hostId, deps.retentionMs).catch(async (error: unknown) => {
    await heartbeat.close({ leaves: false, retentionMs: deps.retentionMs });
    throw error;
  });
  await recordRetention(redis, fleet, deps.retentionMs);
  // While Redis was away the leases may have run out: they are renewed before any other call, of this host or of another.
  const { history, recoverFirst } = deps.connected;
  let declared = history.changes;
  // Stays true when the recovery is repeated after its first heartbeat.
  let hostsLost = false;
  recoverFirst(async (direct) => {
    const lastBeatAt = heartbeat.lastAt;
    const loss = lossOf(await direct.zscore(fleet.hosts, hostId), lastBeatAt);
    hostsLost ||= loss === 'hosts';
    if (loss !== 'nothing') await noteLoss(direct, namespace);
    // Redis may have lost it.
    await recordRetention(direct, fleet, deps.retentionMs).catch(() => {});
    await heartbeat.recover(direct, async () => {
      const { changes } = history;
      if (changes === declared) return leases.renew((held) => jobs.renew(held, direct));
      logger.warn({ 'host.id': hostId, sessions: sessions.size }, 'redis.replaced');
      await leases.renew((held) => jobs.declare(held, direct));
      await sessions.declare(direct);
      declared = changes;
    });
    // The first call to a node of a Cluster shows which one it is.
    if (history.changes !== declared) throw new Error('Redis was replaced meanwhile');
    void settling.begin(lastBeatAt, hostsLost);
    hostsLost = false;
  });

  const onDrainChange = () => {
    if (drainRequest.isMade) sessions.drain();
    wakeUps.notify();
    void heartbeat.beatNow();
  };

  const { removed } = await takeBack({ jobs, sandboxes, sessions, logger });
  const { offered = [], slots: toolSlots = 1, env: toolEnv = {} } = deps.tools ?? {};
  const tools = await createToolHost({
    ...host,
    journal: deps.journal,
    ...{ redisLosses, audit },
    tools: offered,
    slots: toolSlots,
    env: toolEnv,
    isDraining,
    decide: deps.decideTool ?? (() => ({ type: 'allowed' })),
    approvals: new ToolApprovals({ namespace, sealer, approvals }),
  });
  const onDrain = () => void drainRequest.look();
  const readCalls = () => readHostCalls({ ...host, namespace, sessions, tools, hostLog, kept, onDrain });
  const subscription = await subscribeToWakeUps(deps.connected, fleet, hostId, {
    ...{ sessions, tools, readCalls, approvals },
    jobs: wakeUps,
    offers,
  });
  // Calls that came before the subscription.
  await readCalls();
  const fetching = fetchSessions({
    ...{ jobs, sessions, wakeUps, readCalls, settling, logger },
    slots: deps.slots,
    mayTake: takesNew,
    stopping: stopping.signal,
  });
  const requeueing = requeueRegularly(jobs, settling, STALLED_INTERVAL_MS, logger);
  const upkeepTimes = {
    keyPatienceMs: KEY_PATIENCE_MS,
    intervalMs: UPKEEP_INTERVAL_MS,
    quietMs: UPKEEP_QUIET_MS,
    retentionMs: deps.retentionMs,
  };
  const upkeep = startUpkeep({ redis, fleet, jobs, logger, sealKeys: sealer.keyIds, ...upkeepTimes }, settling);
  const watch = watchHosts({ redis, fleet, retentionMs: deps.retentionMs, logger }, settling, WATCH_INTERVAL_MS);
  const asking = startApprovalsUpkeep({ redis, fleet, approvals, jobs, audit, logger }, settling);
  const anchoring = anchorHeadsRegularly(audit, { ...host, namespace });
  const logSweeping = sweepLogsRegularly(hostLog, logger);
  const sandboxSweeping = sweepSandboxesRegularly({ sandboxes, kept, redis, fleet, logger, times: deps.sweepTimes });
  logger.info({ 'host.id': hostId, slots: deps.slots }, 'worker.started');

  return {
    hostId,
    admissionChanged() {
      sessions.admissionChanged();
      void heartbeat.beatNow();
    },
    async close(how, graceMs) {
      stopping.abort();
      wakeUps.notify();
      await fetching;
      // `draining` is published, so no session is sent here any more.
      await heartbeat.beatNow();
      const { count, ended } = sessions.stop(how);
      const sessionsEnded = Promise.race([Promise.all([removed, ended]), delay(graceMs)]);
      await Promise.all([sessionsEnded, tools.close(how === 'end' ? 0 : graceMs)]);
      // What runs in a sandbox may keep it from ending in order.
      if (how === 'end' && sessions.size > 0) {
        await Promise.race([sessions.discard().then(() => ended), delay(DISCARD_MS)]);
      }
      const left = sessions.size;
      logSweeping.close();
      sandboxSweeping.close();
      room?.close();
      otherFleets.close();
      requeueing.close();
      drainRequest.close();
      await Promise.all([upkeep.close(), watch.close(), asking.close(), announcer?.close()]);
      closed.abort();
      await audit.close();
      await anchoring.close();
      await heartbeat.close({ leaves: left === 0, retentionMs: deps.retentionMs });
      subscription.close();
      await jobs.close();
      await sandboxes.close();
      redis.disconnect();
      logger.info({ ended: count - left, left }, 'worker.drained');
      return { ended: count - left, left };
    },
  };
}
