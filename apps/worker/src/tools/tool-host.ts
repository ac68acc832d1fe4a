import { setTimeout as delay } from 'node:timers/promises';
import { Notifier } from '@shellfleet/concurrency';
import { ATTRIBUTES, LIMITS, type ToolJob } from '@shellfleet/protocol';
import { REDIS_DEADLINE_MS } from '@shellfleet/redis';
import { isSignedToolCancel } from '@shellfleet/sealing';
import type { Rules } from '../admission/create-admission.ts';
import type { ToolApprovals } from '../approvals/tool-approvals.ts';
import { createToolJobs, type FoundToolJob, type ToolJobs } from '../queue/tool-jobs.ts';
import type { HostServices } from '../run/host-services.ts';
import type { Tool } from './load-tools.ts';
import { offerTools } from './offer-tools.ts';
import { createTokenRedactor } from './redact-tokens.ts';
import { callFields, parseToolJob, runCall, type StopReason } from './run-call.ts';
import { endStrays } from './stray-processes.ts';
import { ToolLauncher } from './tool-launcher.ts';

// Runs the tool calls of this host.
// TOOLS-1. At most `slots` calls run at a time. Further ones wait in their queues, in order, also for other hosts.
// TOOLS-2. No tool starves another: free slots go to the tools with waiting calls in round-robin order.

export interface ToolHostOptions {
  tools: readonly Tool[];
  /** Returns whether the host takes no new calls. */
  isDraining(): boolean;
  /** Evaluates the rules for a call of a tool. */
  decide: Rules['decideTool'];
  approvals: Pick<ToolApprovals, 'admit'>;
}

export interface ToolHost {
  /** Reports that a call of this tool was added. */
  wakeUp(tool: string): void;
  /** Cancels a call of the tenant. `signed` is the request; where keys are configured, its signature must be valid. */
  cancel(call: { tenant: string; id: string }, signed: string): void;
  /** Takes no new calls, and stops the running ones after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Interval at which all queues are read without a wake-up. */
const POLL_MS = 2_000;

/** Returns the mark of all processes of this host's calls, for one worker or as a prefix for all. */
export function toolMark(namespace: string, hostId: string, boot = ''): string {
  return `${namespace}:${hostId}:${boot}${boot === '' ? '' : ':'}`;
}

export async function createToolHost(host: HostServices, options: ToolHostOptions): Promise<ToolHost> {
  const { fleet, hostId, boot, redis, logger } = host;
  const { tools } = options;
  const mark = toolMark(fleet.namespace, hostId, boot);
  // Results of processes that an earlier worker left can no longer be stored. Sessions need not wait for their end.
  void endStrays(toolMark(fleet.namespace, hostId), { spare: (found) => found.startsWith(mark) }).then((strays) => {
    if (strays > 0) logger.warn({ processes: strays }, 'tools.strays-ended');
  });
  if (tools.length === 0) return { wakeUp() {}, cancel() {}, close: async () => {} };

  const { toolSlots: slots, toolEnv: env } = host.settings;
  const jobs = createToolJobs({ redis, fleet, hostId });
  const preload = [...new Set(tools.flatMap(({ zod }) => zod ?? []))];
  const processes = new ToolLauncher({ slots, env, mark, preload, logger });
  const offered = await offerTools(redis, fleet, hostId, tools, logger);
  // Most calls have the default limit.
  processes.prepare(tools.find((tool) => tool.memoryBytes === LIMITS.toolMemoryBytes) ?? (tools[0] as Tool));
  logger.info({ tools: tools.map(({ name }) => name), slots }, 'tools.offered');
  return new OfferedTools(host, options, jobs, processes, offered);
}

class OfferedTools implements ToolHost {
  readonly #host: HostServices;
  readonly #options: ToolHostOptions;
  readonly #jobs: ToolJobs;
  readonly #processes: ToolLauncher;
  readonly #offered: { close(): Promise<void> };
  readonly #byName: ReadonlyMap<string, Tool>;
  readonly #redact = createTokenRedactor();
  readonly #running = new Map<string, { stop: AbortController; done: Promise<void>; tenant: string; name: string }>();
  readonly #wakeUps = new Notifier();
  readonly #stopping = new AbortController();
  readonly #abandoned = new AbortController();
  /** Tools that may have waiting calls, in round-robin order. */
  readonly #waiting: string[];
  readonly #serving: Promise<void>;

  constructor(
    host: HostServices,
    options: ToolHostOptions,
    jobs: ToolJobs,
    processes: ToolLauncher,
    offered: { close(): Promise<void> },
  ) {
    this.#host = host;
    this.#options = options;
    this.#jobs = jobs;
    this.#processes = processes;
    this.#offered = offered;
    this.#byName = new Map(options.tools.map((tool) => [tool.name, tool]));
    this.#waiting = [...this.#byName.keys()];
    this.#serving = this.#serve();
  }

  wakeUp(name: string): void {
    if (!this.#byName.has(name)) return;
    this.#noteWaiting(name);
    this.#wakeUps.notify();
  }

  cancel({ tenant, id }: { tenant: string; id: string }, signed: string): void {
    const { sealer, fleet } = this.#host;
    const call = this.#running.get(id);
    if (call?.tenant === tenant && isSignedToolCancel(sealer, signed, fleet, { ...call, id }))
      call.stop.abort('cancelled' satisfies StopReason);
  }

  async close(graceMs: number): Promise<void> {
    this.#stopping.abort();
    this.#processes.close();
    this.#wakeUps.notify();
    await Promise.all([this.#serving, this.#offered.close()]);
    const all = [...this.#running.values()];
    await Promise.race([Promise.all(all.map(({ done }) => done)), delay(graceMs, undefined, { ref: false })]);
    for (const { stop } of this.#running.values()) stop.abort('host-stopped' satisfies StopReason);
    this.#abandoned.abort();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
    await this.#jobs.close();
  }

  async #serve(): Promise<void> {
    const { isDraining } = this.#options;
    const { toolSlots: slots } = this.#host.settings;
    while (!this.#stopping.signal.aborted) {
      if (isDraining()) this.#processes.clear();
      if (!isDraining() && this.#running.size < slots && (await this.#takeNext())) continue;
      const notified = await this.#wakeUps.wait({ timeoutMs: POLL_MS });
      if (!notified) for (const name of this.#byName.keys()) this.#noteWaiting(name);
    }
  }

  /** Takes the next call (TOOLS-2). Returns false if no tool has waiting calls. */
  async #takeNext(): Promise<boolean> {
    const { logger } = this.#host;
    const name = this.#waiting.shift();
    if (name === undefined) return false;
    try {
      const found = await this.#jobs.fetch(name);
      if (found === undefined) return true;
      this.#noteWaiting(name);
      const job = parseToolJob(found);
      if (job === undefined) {
        logger.warn({ [ATTRIBUTES.toolName]: name, job: found.id.slice(0, 200) }, 'tool-job.invalid');
        await found.remove();
      } else if (!this.#running.has(job.call)) {
        this.#begin(this.#byName.get(name) as Tool, found, job);
      }
    } catch (err) {
      logger.warn({ err }, 'queue.unavailable');
      this.#noteWaiting(name);
      await delay(REDIS_DEADLINE_MS / 4);
    }
    return true;
  }

  #begin(tool: Tool, found: FoundToolJob, job: ToolJob): void {
    const stop = new AbortController();
    const deps = {
      ...this.#host,
      ...this.#options,
      processes: this.#processes,
      redact: this.#redact,
      abandoned: this.#abandoned.signal,
    };
    const done = runCall(tool, found, job, stop.signal, deps)
      .catch((err: unknown) =>
        deps.logger.error({ err, ...callFields({ tenant: job.tenant, name: tool.name, id: job.call }) }, 'tool.failed'),
      )
      .finally(() => {
        this.#running.delete(job.call);
        this.#wakeUps.notify();
      });
    this.#running.set(job.call, { stop, done, tenant: job.tenant, name: tool.name });
  }

  #noteWaiting(name: string): void {
    if (!this.#waiting.includes(name)) this.#waiting.push(name);
  }
}
