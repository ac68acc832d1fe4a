import { Notifier } from '@shellfleet/concurrency';
import { createSessionJobs, isOffered, type PlacementClass } from '@shellfleet/placement';
import {
  type HostBeat,
  type HostOffer,
  isShellfleetError,
  type PrefixRule,
  SCHEMA_VERSION,
  type ShellfleetError,
} from '@shellfleet/protocol';
import { describeRedis, readTenantUses, recordRetention, requireFleet } from '@shellfleet/redis';
import type { Admission } from '../admission/admission.ts';
import type { Answers, Rules } from '../admission/create-admission.ts';
import { Announcer } from '../approvals/announce-questions.ts';
import type { AnswerCheck } from '../approvals/apply-answers.ts';
import { HostApprovals } from '../approvals/host-approvals.ts';
import { type Gate, openGate } from '../gate/gate.ts';
import { readRoom } from '../gate/read-room.ts';
import { TenantUses } from '../host/tenant-use.ts';
import { claimHostId } from '../lease/boot-claim.ts';
import { refuseOtherRetention } from '../lease/fleet-retention.ts';
import { type Heartbeat, startHeartbeat } from '../lease/heartbeat.ts';
import { createHeldTimes } from '../lease/held-times.ts';
import { createLeases, firstLockMs, LEASE_MS } from '../lease/leases.ts';
import { Settling } from '../lease/settling.ts';
import { RunningEntries } from '../run/entry-run.ts';
import type { HostServices, SessionHost } from '../run/host-services.ts';
import { KeptSandboxes } from '../sandbox/kept-sandboxes.ts';
import { WarmPools } from '../shell/pool/warm-pools.ts';
import type { Tool } from '../tools/load-tools.ts';
import { CanServe } from './can-serve.ts';
import { declareAfterReconnection } from './declare-after-reconnection.ts';
import { FollowedTenants } from './followed-tenants.ts';
import { HostedSessions } from './hosted-sessions.ts';
import { type OperatorRequests, readOperatorRequests } from './operator-requests.ts';
import { STALLED_INTERVAL_MS } from './requeue-regularly.ts';
import { roomForPools } from './room-for-pools.ts';
import type { SweepTimes } from './sweep-sandboxes-regularly.ts';
import { type FleetConfigurationWatch, watchFleetConfiguration } from './watch-fleet-configuration.ts';
import { type OtherFleets, watchOtherFleets } from './watch-other-fleets.ts';
import { Wishes } from './wishes.ts';

export interface WorkerOptions {
  /** What sessions may request in addition to the policies. */
  offer: HostOffer;
  tools: readonly Tool[];
  /** Returns the admission of this host, which uses the `answers` of people. */
  admission(answers: Answers): Admission;
  /** Evaluates the rules for a call of a tool. */
  decideTool: Rules['decideTool'];
  /**
   * Applies the rules of the fleet's configuration. Throws if they are not valid, and then keeps the previous ones.
   * Default: the host has none.
   */
  useFleetRules?(rules: readonly PrefixRule[]): void;
  /** Decides who may answer questions. */
  checkAnswer: AnswerCheck;
  /** Returns problems that the operator of this host should solve. */
  warnings(): string[];
  /** Is called when another process acts as this host. */
  onReplaced(): void;
  /** Is called when Redis has another fleet or key version, because it was replaced. The shells are to stay alive. */
  onOtherFleet(error: ShellfleetError): void;
  /** Times of the sweeps of unowned sandboxes, if not the usual ones. */
  sweepTimes?: SweepTimes | undefined;
}

/** A worker that takes part in its fleet, but serves no session yet. */
export interface OpenWorker {
  readonly host: SessionHost;
  readonly options: WorkerOptions;
  readonly sessions: HostedSessions;
  /** Tenants that have sessions here. */
  readonly tenants: FollowedTenants;
  readonly heartbeat: Heartbeat;
  readonly settling: Settling;
  readonly requests: OperatorRequests;
  readonly fleetConfiguration: FleetConfigurationWatch;
  /** Returns whether this host takes nothing new, for good or until its operator withdraws the request. */
  isDraining(): boolean;
  /** Returns why this host takes no new session, one sentence each, unless it drains. */
  problems(): string[];
  readonly gate: Gate;
  readonly pools: WarmPools;
  readonly otherFleets: OtherFleets;
  readonly announcer: Announcer | undefined;
  /** Notified when there may be a job or a free slot, and when the worker stops. */
  readonly wakeUps: Notifier;
  /** Aborts when the worker takes no new work. */
  readonly stopping: AbortController;
  /** Aborts when no more answers are waited for. */
  readonly closed: AbortController;
}

/** Claims the host id, prepares what serves sessions, and joins the fleet with a first heartbeat. */
export async function openWorker(services: HostServices, options: WorkerOptions): Promise<OpenWorker> {
  const { redis, fleet, hostId, settings, logger } = services;
  const { retentionMs } = settings;
  const claim = { hostId, machine: services.machine, boot: services.boot, ttlMs: LEASE_MS };
  await refuseOtherRetention(redis, fleet, hostId, retentionMs);
  await claimHostId(redis, services.namespace, claim);

  const wakeUps = new Notifier();
  const onFree = () => wakeUps.notify();
  const stopping = new AbortController();
  const closed = new AbortController();
  const fleetConfiguration = await watchFleetConfiguration(services, ({ rules }) => options.useFleetRules?.(rules));
  const gate = await openGate({
    ...{ stateDirectory: settings.stateDirectory, thresholds: settings, logger, onRoom: onFree },
    readRoom: (stateDirectory) => readRoom(stateDirectory, services.hostMemory),
    otherProblems: () =>
      [services.sandboxes.problem(), ...fleetConfiguration.problems()].filter((problem) => problem !== undefined),
  });
  const requests = await readOperatorRequests(services);
  const isDraining = () => stopping.signal.aborted || requests.drained;
  const problems = () => [...(requests.cordoned ? [cordonedSentence(hostId)] : []), ...gate.problems()];
  const pools = new WarmPools({
    ...{ settings: settings.file.pools, sandboxes: services.sandboxes, limitOpening: gate.limitOpening, logger },
    room: () =>
      roomForPools({
        ...{ slots: settings.slots, sessions, gate, isDraining: isDraining() },
        takesNone: requests.cordoned || !settling.settled,
      }),
  });
  const { webhook } = settings.file.approvals;
  const announcer = webhook && new Announcer({ ...services, webhook });
  const host = await createSessionHost(services, options, {
    fleetConfiguration,
    takesNew: () => !isDraining() && gate.problems().length === 0,
    limitOpening: (policy, open) => gate.limitOpening(policy, open),
    pools,
    onHostMemory: () => gate.ranOutOfMemory(),
    onAsked(tenant) {
      services.metrics?.asked();
      announcer?.asked(tenant);
    },
    signal: closed.signal,
  });
  const heldTimes = createHeldTimes();
  const tenants = new FollowedTenants();
  const sessions = new HostedSessions(host, {
    ...{ stopping: stopping.signal, tenants },
    onEnded(heldMs) {
      heldTimes.record(heldMs);
      services.metrics?.sessionHeld(heldMs);
      wakeUps.notify();
    },
  });
  const settling = new Settling({ ...services, onSettled: onFree });
  const otherFleets = await watchOtherFleets(services);
  const warnings = () =>
    [
      options.warnings(),
      gate.warnings(),
      pools.warnings(),
      services.sandboxes.images?.warnings() ?? [],
      announcer?.warnings ?? [],
      otherFleets.warnings(),
      fleetConfiguration.warnings(),
    ].flat();
  const heartbeat = await startHeartbeat({
    ...{ redis, fleet, claim, leases: host.leases, logger, onReplaced: options.onReplaced },
    requireFleet: (via) =>
      requireFleet(via, services.namespace, describeRedis(settings.redisUrl)).catch((error: unknown) => {
        const codes = ['FLEET_CONFLICT', 'PROTOCOL_MISMATCH'];
        if (isShellfleetError(error) && codes.includes(error.code)) options.onOtherFleet(error);
        throw error;
      }),
    beat: () => ({
      ...describeHost(host, sessions),
      ...abilitiesOf(services, options.offer),
      ...{ draining: isDraining(), problems: problems(), gate: gate.describe(), warnings: warnings() },
      pools: pools.describe(),
      heldMs: heldTimes.median(),
      configuration: fleetConfiguration.revision,
    }),
  });
  // Another worker may have started at the same time. At least one of the two sees the other's heartbeat.
  await refuseOtherRetention(redis, fleet, hostId, retentionMs).catch(async (error: unknown) => {
    await heartbeat.close({ leaves: false, retentionMs });
    throw error;
  });
  await recordRetention(redis, fleet, retentionMs);
  declareAfterReconnection({ host, sessions, heartbeat, settling });
  return {
    ...{ host, options, sessions, heartbeat, settling, requests, isDraining, gate, pools, otherFleets, announcer },
    fleetConfiguration,
    ...{ tenants, problems, wakeUps, stopping, closed },
  };
}

const cordonedSentence = (hostId: string) =>
  `An operator has cordoned it. \`shellfleet hosts uncordon ${hostId}\` lets it take sessions again.`;

/** Returns the abilities that decide which sessions this host takes. */
const abilitiesOf = ({ settings, sealer }: HostServices, allow: HostOffer) => ({
  policies: settings.policies,
  labels: settings.file.labels,
  sealKeys: [...sealer.keyIds],
  schema: SCHEMA_VERSION,
  allow,
});

async function createSessionHost(
  services: HostServices,
  { offer, admission, checkAnswer }: WorkerOptions,
  {
    takesNew,
    limitOpening,
    pools,
    onHostMemory,
    fleetConfiguration,
    ...asking
  }: Pick<SessionHost, 'takesNew' | 'limitOpening' | 'pools' | 'onHostMemory'> &
    Pick<OpenWorker, 'fleetConfiguration'> & { onAsked(tenant: string): void; signal: AbortSignal },
): Promise<SessionHost> {
  const { settings } = services;
  const abilities = abilitiesOf(services, offer);
  const offers = (name: PlacementClass) => isOffered(name, abilities);
  const canServe = new CanServe(services, offer, settings.defaultImage);
  const wishes = new Wishes(services);
  const jobs = await createSessionJobs({
    ...{ ...services, offers, serves: (job) => canServe.job(job) },
    isWishedElsewhere: (job, image) => wishes.areMetElsewhere(job, image),
    ...{ weights: fleetConfiguration.weights, quotas: fleetConfiguration.quotas },
    ...{ lockMsOf: firstLockMs, stalledIntervalMs: STALLED_INTERVAL_MS },
  });
  const mostPending = settings.file.approvals.pendingPerTenant;
  const approvals = new HostApprovals({ ...services, ...asking, jobs, check: checkAnswer, mostPending });
  return {
    ...services,
    uses: new TenantUses(await readTenantUses(services.redis, services.namespace, services.hostId)),
    mostIdleMs: (tenant) => fleetConfiguration.idleTimeouts().get(tenant) ?? Number.POSITIVE_INFINITY,
    ...{ jobs, leases: createLeases(jobs), offers, serves: (spec) => canServe.spec(spec), takesNew, limitOpening },
    pools,
    onHostMemory,
    kept: new KeptSandboxes(services),
    hostEntries: new RunningEntries(),
    ...{ hostAdmission: admission(approvals), approvals },
  };
}

/** Returns the part of a heartbeat that describes settings and sessions. */
function describeHost({ settings, sandboxes, boot, version, hostEntries }: SessionHost, sessions: HostedSessions) {
  const { slots, defaultImage, retentionMs } = settings;
  return {
    ...{ slots, free: Math.max(0, slots - sessions.size), sessions: sessions.size, held: sessions.asking },
    ...{ pulls: sandboxes.images?.running() ?? [], images: [...(sandboxes.images?.marks ?? [])] },
    ...{ running: hostEntries.count, commandsPerSecond: hostEntries.endedCommands.perSecond() },
    ...{ version, boot, defaultImage, retentionMs },
  } satisfies Partial<HostBeat>;
}
