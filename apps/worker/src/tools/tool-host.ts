import { setTimeout as delay } from 'node:timers/promises';
import { Notifier } from '@shellfleet/concurrency';
import { ATTRIBUTES, type FleetKeys, LIMITS, type ToolJob } from '@shellfleet/protocol';
import { REDIS_DEADLINE_MS } from '@shellfleet/redis';
import { isSignedToolCancel, type Sealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Rules } from '../admission/create-admission.ts';
import type { ToolApprovals } from '../approvals/tool-approvals.ts';
import type { Audit } from '../audit/audit.ts';
import type { Journal } from '../journal/journal.ts';
import type { RedisLosses } from '../journal/redis-losses.ts';
import { createToolJobs, type FoundToolJob } from '../queue/tool-jobs.ts';
import type { Tool } from './load-tools.ts';
import { offerTools } from './offer-tools.ts';
import { createTokenRedactor } from './redact-tokens.ts';
import { parseToolJob, runCall, type StopReason } from './run-call.ts';
import { endStrays } from './stray-processes.ts';
import { ToolLauncher } from './tool-launcher.ts';

// Runs the tool calls of this host.
//
// TOOLS-1. At most `slots` calls at a time. Further ones wait in their queues, in order, also for other hosts.
// TOOLS-2. No tool starves another: free slots go to the tools with waiting calls in round-robin order.

export interface ToolHostDeps {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  boot: string;
  sealer: Sealer;
  journal: Journal;
  redisLosses: RedisLosses;
  audit: Audit;
  logger: Logger;
  tools: readonly Tool[];
  slots: number;
  env: Record<string, string>;
  /** The host takes no new call. */
  isDraining(): boolean;
  /** What the rules say about a call of a tool. */
  decide: Rules['decideTool'];
  approvals: Pick<ToolApprovals, 'admit'>;
}

export interface ToolHost {
  /** A call of this tool was added. */
  wakeUp(tool: string): void;
  /** `signed`: the request as its producer signed it. Nothing is cancelled where a signature is asked for and this is none. */
  cancel(call: string, signed: string): void;
  /** Takes no new call, and stops running ones after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** How often every queue is read without a wake-up. */
const POLL_MS = 2_000;

/** The mark in the environment of every process of this host's calls. */
export function toolMark(namespace: string, hostId: string, boot = ''): string {
  return `${namespace}:${hostId}:${boot}${boot === '' ? '' : ':'}`;
}

export async function createToolHost(deps: ToolHostDeps): Promise<ToolHost> {
  const { redis, fleet, hostId, boot, logger, tools, slots } = deps;
  const mark = toolMark(fleet.namespace, hostId, boot);
  // Processes that an earlier worker left: their results cannot be stored any more.
  // Nobody waits for it: the sessions of this host go on meanwhile.
  void endStrays(toolMark(fleet.namespace, hostId), { spare: (found) => found.startsWith(mark) }).then((strays) => {
    if (strays > 0) logger.warn({ processes: strays }, 'tools.strays-ended');
  });
  if (tools.length === 0) return { wakeUp() {}, cancel() {}, close: async () => {} };

  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const jobs = await createToolJobs({ redis, fleet, hostId, tools: [...byName.keys()] });
  const redact = createTokenRedactor();
  const running = new Map<string, { stop: AbortController; done: Promise<void>; tenant: string; name: string }>();
  const preload = [...new Set(tools.flatMap(({ zod }) => zod ?? []))];
  const processes = new ToolLauncher({ slots, env: deps.env, mark, preload, logger });
  const wakeUps = new Notifier();
  const stopping = new AbortController();
  const abandoned = new AbortController();
  /** Tools that may have waiting calls, in round-robin order. */
  const waiting = [...byName.keys()];

  const offered = await offerTools(redis, fleet, hostId, tools, logger);
  // Most calls are of tools with the default limit, or the host has few tools.
  processes.prepare(tools.find((tool) => tool.memoryBytes === LIMITS.toolMemoryBytes) ?? (tools[0] as Tool));
  const serving = serve();
  logger.info({ tools: [...byName.keys()], slots }, 'tools.offered');

  return {
    wakeUp(name) {
      if (!byName.has(name)) return;
      noteWaiting(name);
      wakeUps.notify();
    },
    cancel(id, signed) {
      const call = running.get(id);
      if (call !== undefined && isSignedToolCancel(deps.sealer, signed, fleet, { ...call, id }))
        call.stop.abort('cancelled' satisfies StopReason);
    },
    async close(graceMs) {
      stopping.abort();
      processes.close();
      wakeUps.notify();
      await Promise.all([serving, offered.close()]);
      const all = [...running.values()];
      await Promise.race([Promise.all(all.map(({ done }) => done)), delay(graceMs, undefined, { ref: false })]);
      for (const { stop } of running.values()) stop.abort('host-stopped' satisfies StopReason);
      abandoned.abort();
      await Promise.all([...running.values()].map(({ done }) => done));
      await jobs.close();
    },
  };

  // Resolves when the worker stops.
  async function serve(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (deps.isDraining()) processes.clear();
      if (!deps.isDraining() && running.size < slots && (await takeNext())) continue;
      const notified = await wakeUps.wait({ timeoutMs: POLL_MS });
      if (!notified) for (const name of byName.keys()) noteWaiting(name);
    }
  }

  /** Takes the next call (TOOLS-2). Returns false when no tool has waiting calls. */
  async function takeNext(): Promise<boolean> {
    const name = waiting.shift();
    if (name === undefined) return false;
    try {
      const found = await jobs.fetch(name);
      if (found === undefined) return true;
      noteWaiting(name);
      const job = parseToolJob(found);
      if (job === undefined) {
        logger.warn({ [ATTRIBUTES.toolName]: name, job: found.id.slice(0, 200) }, 'tool-job.invalid');
        await found.remove();
      } else if (!running.has(job.call)) {
        begin(byName.get(name) as Tool, found, job);
      }
    } catch (err) {
      logger.warn({ err }, 'queue.unavailable');
      noteWaiting(name);
      await delay(REDIS_DEADLINE_MS / 4);
    }
    return true;
  }

  function begin(tool: Tool, found: FoundToolJob, job: ToolJob): void {
    const stop = new AbortController();
    const done = runCall(tool, found, job, stop.signal, { ...deps, processes, redact, abandoned: abandoned.signal })
      .catch((err: unknown) =>
        logger.error({ err, [ATTRIBUTES.toolName]: tool.name, [ATTRIBUTES.toolCall]: job.call }, 'tool.failed'),
      )
      .finally(() => {
        running.delete(job.call);
        wakeUps.notify();
      });
    running.set(job.call, { stop, done, tenant: job.tenant, name: tool.name });
  }

  function noteWaiting(name: string): void {
    if (!waiting.includes(name)) waiting.push(name);
  }
}
