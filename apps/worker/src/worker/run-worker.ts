import { startApprovalsUpkeep } from '../approvals/approvals-upkeep.ts';
import { ToolApprovals } from '../approvals/tool-approvals.ts';
import { anchorHeadsRegularly } from '../audit/anchor-heads.ts';
import { createToolHost, type ToolHost } from '../tools/tool-host.ts';
import { startUpkeep } from '../upkeep/upkeep.ts';
import { watchHosts } from '../upkeep/watch-hosts.ts';
import { fetchSessions } from './fetch-sessions.ts';
import { readHostCalls } from './host-calls.ts';
import type { OpenWorker } from './open-worker.ts';
import { requeueRegularly } from './requeue-regularly.ts';
import { sweepLogsRegularly } from './sweep-logs-regularly.ts';
import { sweepSandboxesRegularly } from './sweep-sandboxes-regularly.ts';
import { takeBack } from './take-back.ts';
import { subscribeToWakeUps } from './wake-ups.ts';

const UPKEEP_INTERVAL_MS = 2_000;
/** Less than 5 s together with the validity of a heartbeat. */
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
  const { host, options, sessions, settling, drainRequest, wakeUps, isDraining } = open;
  const { audit, approvals } = host;
  const { retentionMs } = host.settings;
  const { removed } = await takeBack(host, sessions);
  const tools = await createToolHost(host, {
    ...{ tools: options.tools, isDraining, decide: options.decideTool },
    approvals: new ToolApprovals(host),
  });
  const draining = drainRequest.watch(() => {
    if (drainRequest.isMade) sessions.drain();
    wakeUps.notify();
    void open.heartbeat.beatNow();
  });
  const onDrain = () => void drainRequest.look();
  const readCalls = () => readHostCalls({ ...host, sessions, tools, onDrain });
  const subscription = await subscribeToWakeUps(host, { sessions, tools, approvals, jobs: wakeUps, readCalls });
  // Reads calls that came before the subscription.
  await readCalls();
  const fetching = fetchSessions(open, readCalls);
  const upkeepTimes = { keyPatienceMs: KEY_PATIENCE_MS, intervalMs: UPKEEP_INTERVAL_MS, quietMs: UPKEEP_QUIET_MS };
  const rounds: (Closable | undefined)[] = [
    ...[draining, open.room, open.otherFleets, open.announcer],
    requeueRegularly(host, settling),
    startUpkeep({ ...host, sealKeys: host.sealer.keyIds, retentionMs, ...upkeepTimes }, settling),
    watchHosts({ ...host, retentionMs }, settling, WATCH_INTERVAL_MS),
    startApprovalsUpkeep(host, settling),
    sweepLogsRegularly(host),
    sweepSandboxesRegularly(host, options.sweepTimes),
  ];
  const anchoring = anchorHeadsRegularly(audit, host);
  return {
    ...{ tools, removed, fetching, subscription, anchoring },
    rounds: rounds.filter((round) => round !== undefined),
  };
}
