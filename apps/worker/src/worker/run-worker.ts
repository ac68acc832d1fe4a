import { type Repetition, repeat } from '@shellfleet/concurrency';
import { startApprovalsUpkeep } from '../approvals/approvals-upkeep.ts';
import { ToolApprovals } from '../approvals/tool-approvals.ts';
import { anchorHeadsRegularly } from '../audit/anchor-heads.ts';
import { type DrivenBatches, driveBatches } from '../batches/driven-batches.ts';
import type { HostServices, SessionHost } from '../run/host-services.ts';
import { removeSandbox } from '../sandbox/remove-sandbox.ts';
import type { Sandbox, UnassignedSandbox } from '../sandbox/sandbox.ts';
import { createToolHost, type ToolHost } from '../tools/tool-host.ts';
import { startUpkeep } from '../upkeep/upkeep.ts';
import { watchHosts } from '../upkeep/watch-hosts.ts';
import { fetchSessions } from './fetch-sessions.ts';
import { readHostCalls } from './host-calls.ts';
import { type HostedSessions, memberOf } from './hosted-sessions.ts';
import type { OpenWorker } from './open-worker.ts';
import { reportUsesRegularly } from './report-uses.ts';
import { requeueRegularly } from './requeue-regularly.ts';
import { countHostsRegularly, spreadLooks } from './spread-looks.ts';
import { sweepSandboxesRegularly } from './sweep-sandboxes-regularly.ts';
import { subscribeToWakeUps } from './wake-ups.ts';

const UPKEEP_INTERVAL_MS = 2_000;
const LOGS_INTERVAL_MS = 60_000;
const IMAGES_INTERVAL_MS = 60_000;
/** Interval of checks for silent hosts. Together with the validity of a heartbeat it is less than 5 s. */
const WATCH_INTERVAL_MS = 400;
/** Time for the hosts with a seal key to restart. */
const KEY_PATIENCE_MS = 15_000;
/** Longer than the interval at which producers note sessions in use, with a margin for a busy machine. */
const UPKEEP_QUIET_MS = 60_000;

interface Closable {
  close(): void | Promise<void>;
}

/** What `closeWorker` closes. */
export interface RunningWorker {
  readonly tools: ToolHost;
  readonly batches: DrivenBatches;
  /** Resolves when the unowned sandboxes of an earlier process are removed. */
  readonly removed: Promise<unknown>;
  /** Resolves when no more sessions are fetched. */
  readonly fetching: Promise<void>;
  readonly subscription: Closable;
  readonly anchoring: Closable;
  /** Repeated tasks, which can be closed in any order. */
  readonly rounds: readonly Closable[];
}

/** Continues the host's sessions, serves sessions and tool calls, and does its share of the upkeep. */
export async function runWorker(open: OpenWorker): Promise<RunningWorker> {
  const { host, options, sessions, settling, requests, wakeUps, isDraining } = open;
  const { audit, approvals } = host;
  const { retentionMs } = host.settings;
  const { removed } = await takeBack(host, sessions);
  open.pools.start();
  const tools = await createToolHost(host, {
    ...{ tools: options.tools, decide: options.decideTool },
    isDraining: () => isDraining() || open.fleetConfiguration.problems().length > 0,
    approvals: new ToolApprovals(host),
  });
  const mayTake = () => host.takesNew() && !requests.cordoned && settling.settled;
  const batches = driveBatches(host, mayTake);
  const watching = requests.watch(() => {
    if (requests.drained) {
      sessions.drain();
      void batches.handOver();
    }
    open.pools.tend();
    wakeUps.notify();
    void open.heartbeat.beatNow();
  });
  const onOperatorRequest = () => void requests.look();
  const onConfiguration = async () => {
    await open.fleetConfiguration.look();
    // Idle sessions compare their time with the new one.
    sessions.admissionChanged();
    wakeUps.notify();
    await open.heartbeat.beatNow();
  };
  const readCalls = () => readHostCalls({ ...host, sessions, tools, onOperatorRequest });
  const hosts = countHostsRegularly(host);
  const subscription = await subscribeToWakeUps(host, open.tenants, {
    ...{ sessions, tools, approvals, jobs: spreadLooks(wakeUps, hosts.count), readCalls, onConfiguration },
    batches: spreadLooks({ notify: () => void batches.look() }, hosts.count),
  });
  // Reads calls that came before the subscription.
  await readCalls();
  const fetching = fetchSessions(open, readCalls);
  const upkeepTimes = { keyPatienceMs: KEY_PATIENCE_MS, intervalMs: UPKEEP_INTERVAL_MS, quietMs: UPKEEP_QUIET_MS };
  const { diskQuotas } = open.fleetConfiguration;
  const rounds: (Closable | undefined)[] = [
    ...[watching, hosts, open.gate, open.pools, open.otherFleets, open.announcer, open.fleetConfiguration],
    requeueRegularly(host, settling, wakeUps),
    startUpkeep({ ...host, sealKeys: host.sealer.keyIds, retentionMs, diskQuotas, ...upkeepTimes }, settling),
    watchHosts({ ...host, retentionMs }, settling, WATCH_INTERVAL_MS),
    startApprovalsUpkeep(host, settling),
    sweepLogsRegularly(host),
    sweepSandboxesRegularly(host, settling, options.sweepTimes),
    tendImagesRegularly(host),
    reportUsesRegularly(host, open.fleetConfiguration),
  ];
  const anchoring = anchorHeadsRegularly(audit, host);
  return {
    ...{ tools, batches, removed, fetching, subscription, anchoring },
    rounds: rounds.filter((round) => round !== undefined),
  };
}

/** Removes expired command logs now, and every minute until closed. */
function sweepLogsRegularly({ overflowLogs, logger }: HostServices): Repetition {
  const rounds = repeat(() => overflowLogs.sweep(), {
    everyMs: LOGS_INTERVAL_MS,
    onError: (err) => logger.warn({ err }, 'overflow-log.sweep-failed'),
  });
  void rounds.now();
  return rounds;
}

/** Tends the images of this host now, and every minute until closed. */
function tendImagesRegularly({ sandboxes, logger }: HostServices): Repetition {
  const rounds = repeat(async () => sandboxes.images?.tend(), {
    everyMs: IMAGES_INTERVAL_MS,
    onError: (err) => logger.warn({ err }, 'images.upkeep-failed'),
  });
  void rounds.now();
  return rounds;
}

/** Continues this host's sessions in their living sandboxes. `removed` resolves when its other sandboxes are gone. */
async function takeBack(
  { jobs, sandboxes, logger }: SessionHost,
  sessions: HostedSessions,
): Promise<{ removed: Promise<unknown> }> {
  const [own, found] = await Promise.all([jobs.listOwn(), sandboxes.list()]);
  const owned = new Set(own.map(memberOf));
  const living = new Map<string, Sandbox>();
  const leftovers: UnassignedSandbox[] = [];
  for (const { sandbox, state } of found) {
    const member = state === 'running' ? memberOf(sandbox.session) : '';
    if (state === 'running' && owned.has(member) && !living.has(member)) living.set(member, sandbox);
    else leftovers.push(sandbox);
  }
  for (const job of own) void sessions.serve(job, living.get(memberOf(job)));
  if (own.length > 0) logger.info({ sessions: own.length, adoptable: living.size }, 'worker.restarted');
  return { removed: Promise.all(leftovers.map((sandbox) => removeSandbox(sandbox, logger))) };
}
