import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { createSessionJobs, offeredClasses, type SessionJob } from '@shellfleet/admission';
import { type Connected, createSealer, REDIS_DEADLINE_MS } from '@shellfleet/mailbox';
import {
  type AskCall,
  fleetKeys,
  type HostCall,
  hostKeys,
  PROTOCOL_VERSION,
  parseWakeUp,
  ShellfleetError,
  sessionKeys,
  type WakeUp,
} from '@shellfleet/protocol';
import type { Logger } from 'pino';
import { answerQuestion } from './calls/answer-question.ts';
import { readCalls } from './calls/read-calls.ts';
import type { HostLog } from './host-log/host-log.ts';
import { claimHostId } from './lease/boot-claim.ts';
import { ALIVE_MS, startHeartbeat } from './lease/heartbeat.ts';
import { createHeldTimes } from './lease/held-times.ts';
import { createLeases } from './lease/leases.ts';
import { RunningEntries } from './run/running-entries.ts';
import type { Sandbox, Sandboxes } from './sandbox/sandbox.ts';
import { createGate } from './session/gate.ts';
import { Session, type Stop } from './session/session.ts';
import { createWake } from './session/wake.ts';
import type { Tool } from './tools/load-tools.ts';
import { createToolHost } from './tools/tool-host.ts';
import { startUpkeep } from './upkeep/upkeep.ts';

/** How often the queue is looked at without a wake-up. */
const POLL_MS = 1_000;
/** Of a lock just taken, until the session's own grace is known. */
const FIRST_LOCK_MS = ALIVE_MS + 60_000;
const STALLED_INTERVAL_MS = 1_000;
const UPKEEP_INTERVAL_MS = 2_000;
const LOG_SWEEP_INTERVAL_MS = 60_000;
/** A session that could not go on here is tried again, a little later each time; then its lease runs out. */
const RETRY_PAUSES_MS = [500, 1_000, 2_000];

export interface WorkerDeps {
  connected: Connected;
  namespace: string;
  hostId: string;
  /** names the machine (its state folder), which outlives a process */
  machine: string;
  slots: number;
  policies: string[];
  tools?: { offered: readonly Tool[]; slots: number; env: Record<string, string> };
  defaultImage: string;
  version: string;
  sealKeys: readonly string[];
  sandboxes: Sandboxes;
  hostLog: HostLog;
  logger: Logger;
  /** Another process acts as this host. */
  onReplaced(): void;
}

export interface Worker {
  readonly hostId: string;
  /** Takes nothing new and waits up to `graceMs` for what runs. `hand-over`: shells live on; `end`: they end. */
  close(how: Stop, graceMs: number): Promise<{ ended: number; left: number }>;
}

/** A host's agent: claims the host id, takes back what it owned before, then serves sessions while it has slots. */
export async function createWorker(deps: WorkerDeps): Promise<Worker> {
  const { namespace, hostId, logger } = deps;
  const { redis } = deps.connected;
  const fleet = fleetKeys(namespace);
  const claim = { hostId, machine: deps.machine, boot: randomUUID(), ttlMs: ALIVE_MS };
  const sealer = createSealer(deps.sealKeys);
  await claimHostId(redis, namespace, claim);

  const sessions = new Map<string, { session: Session; done: Promise<void> }>();
  const offers = offeredClasses(deps.policies);
  const jobs = await createSessionJobs({
    redis,
    fleet,
    hostId,
    offers,
    lockMs: FIRST_LOCK_MS,
    stalledIntervalMs: STALLED_INTERVAL_MS,
  });
  const leases = createLeases(jobs);
  const heldTimes = createHeldTimes();
  const running = new RunningEntries();
  const openGate = createGate(2 * availableParallelism());
  const stopping = new AbortController();
  const wake = createWake();

  const heartbeat = await startHeartbeat({
    redis,
    fleet,
    claim,
    leases,
    logger,
    onReplaced: deps.onReplaced,
    beat: () => ({
      slots: deps.slots,
      free: Math.max(0, deps.slots - sessions.size),
      policies: deps.policies,
      version: deps.version,
      protocol: PROTOCOL_VERSION,
      boot: claim.boot,
      draining: stopping.signal.aborted,
      defaultImage: deps.defaultImage,
      heldMs: heldTimes.median(),
    }),
  });

  // A Redis that was away may have let our leases run out: they are renewed before anybody takes them for a lost host's.
  redis.on('ready', () => void heartbeat.beatNow());

  const serve = (job: SessionJob, found?: Sandbox, failures = 0): void => {
    if (stopping.signal.aborted) return;
    const key = memberOf(job);
    // Its job may be back before its last life here has quite ended.
    const before = sessions.get(key)?.done;
    if (before !== undefined) return void before.then(() => serve(job, found, failures));
    const { lockMs, ...shared } = { redis, fleet, hostId, sealer, jobs, leases, lockMs: FIRST_LOCK_MS, logger };
    const session = new Session(job, {
      ...shared,
      lockMs,
      sandboxes: deps.sandboxes,
      openGate,
      hostLog: deps.hostLog,
      running,
      offers,
    });
    const from = performance.now();
    const served = session.serve(found);
    const done = served.then(() => {
      sessions.delete(key);
      heldTimes.note(performance.now() - from);
      wake.ring('bell');
    });
    sessions.set(key, { session, done });
    void served.then(async (how) => {
      const pauseMs = RETRY_PAUSES_MS[failures];
      if (how === 'ended' || pauseMs === undefined) return;
      await delay(pauseMs, undefined, { ref: false });
      serve(job, found, failures + 1);
    });
  };

  const { leftovers } = await takeBack();
  const { offered = [], slots: toolSlots = 1, env: toolEnv = {} } = deps.tools ?? {};
  const tools = await createToolHost({
    redis,
    fleet,
    hostId,
    boot: claim.boot,
    sealer,
    logger,
    tools: offered,
    slots: toolSlots,
    env: toolEnv,
  });
  const subscriber = await subscribe();
  const fetching = fetchWhileFree();
  const upkeep = startUpkeep({ redis, fleet, jobs, logger, intervalMs: UPKEEP_INTERVAL_MS });
  const sweepLogs = () =>
    void deps.hostLog.sweep().catch((err: unknown) => logger.warn({ err }, 'host-log.sweep-failed'));
  sweepLogs();
  const logSweeping = setInterval(sweepLogs, LOG_SWEEP_INTERVAL_MS);
  logger.info({ 'host.id': hostId, slots: deps.slots }, 'worker.started');

  return {
    hostId,
    async close(how, graceMs) {
      stopping.abort();
      wake.ring('draining');
      await fetching;
      await heartbeat.beatNow();
      const all = [...sessions.values()];
      for (const { session } of all) session.stop(how);
      const sessionsEnded = Promise.race([Promise.all([leftovers, ...all.map(({ done }) => done)]), delay(graceMs)]);
      await Promise.all([sessionsEnded, tools.close(how === 'end' ? 0 : graceMs)]);
      const left = sessions.size;
      clearInterval(logSweeping);
      await upkeep.close();
      await heartbeat.close();
      subscriber.disconnect();
      await jobs.close();
      await deps.sandboxes.close();
      redis.disconnect();
      logger.info({ ended: all.length - left, left }, 'worker.drained');
      return { ended: all.length - left, left };
    },
  };

  /** Sessions whose lock still names this host go on; sandboxes that belong to none of them are leftovers. What is returned ends when those are gone. */
  async function takeBack(): Promise<{ leftovers: Promise<unknown> }> {
    const [own, found] = await Promise.all([jobs.listOwn(), deps.sandboxes.list()]);
    const owned = new Set(own.map(memberOf));
    const living = new Map<string, Sandbox>();
    const leftovers: Sandbox[] = [];
    for (const { sandbox, state } of found) {
      const key = memberOf(sandbox.session);
      if (state === 'running' && owned.has(key) && !living.has(key)) living.set(key, sandbox);
      else leftovers.push(sandbox);
    }
    for (const job of own) serve(job, living.get(memberOf(job)));
    if (own.length > 0) logger.info({ sessions: own.length, adoptable: living.size }, 'worker.restarted');
    const removed = leftovers.map((sandbox) =>
      sandbox.remove().catch((err: unknown) => logger.warn({ err }, 'sandbox.remove-failed')),
    );
    return { leftovers: Promise.all(removed) };
  }

  /** One subscriber for all wake-ups of this host. */
  async function subscribe() {
    const subscriber = deps.connected.duplicate('host', `shellfleet-worker:${hostId}:wakeups`);
    subscriber.on('message', (_channel: string, message: string) => {
      const wakeUp = parseWakeUp(message);
      if (wakeUp !== undefined) receive(wakeUp);
    });
    await subscriber.connect();
    await subscriber.subscribe(hostKeys(namespace, hostId).wakeUps, fleet.sessionsWakeUps, fleet.toolsWakeUps);
    await answerCalls();
    return subscriber;
  }

  function receive(wakeUp: WakeUp): void {
    switch (wakeUp.type) {
      case 'sessions':
        if (offers.includes(wakeUp.placementClass)) wake.ring('bell');
        break;
      case 'tool':
        tools.ring(wakeUp.name);
        break;
      case 'calls':
        void answerCalls();
        break;
      case 'session':
        sessions.get(memberOf(wakeUp))?.session.ring();
        break;
      case 'input':
        sessions.get(memberOf(wakeUp))?.session.ringInput();
        break;
      case 'terminal':
        sessions.get(memberOf(wakeUp))?.session.ringTerminal(wakeUp.terminal);
        break;
    }
  }

  async function answerCalls(): Promise<void> {
    await readCalls(redis, namespace, hostId, logger, answerCall).catch((err: unknown) =>
      logger.warn({ err }, 'calls.failed'),
    );
  }

  function answerCall(call: HostCall): void {
    if (call.type === 'cancel-tool') {
      tools.cancel(call.call);
      return;
    }
    const session = sessions.get(memberOf(call))?.session;
    switch (call.type) {
      case 'close':
        session?.close();
        break;
      case 'cancel':
        session?.cancel(call.entry);
        break;
      case 'ask':
        void answerQuestion(call, { redis, namespace, sealer, find }).catch((err: unknown) =>
          logger.warn({ err }, 'calls.failed'),
        );
        break;
    }
  }

  /** What this host is asked about a session. */
  async function find({ tenant, session, question }: AskCall): Promise<unknown> {
    // A log stays here when its session has gone.
    if (question.type === 'log') return deps.hostLog.read(sessionKeys(namespace, tenant, session), question);
    const found = sessions.get(memberOf({ tenant, session }))?.session;
    if (found === undefined) throw new ShellfleetError('LEASE_LOST', `Session ${session} is not on host ${hostId}.`);
    switch (question.type) {
      case 'background':
        return found.background();
      case 'attach':
        return found.attach(question);
    }
  }

  async function fetchWhileFree(): Promise<void> {
    while (!stopping.signal.aborted) {
      const job = sessions.size < deps.slots ? await fetch() : undefined;
      if (job !== undefined) {
        serve(job);
        continue;
      }
      await wake.wait(POLL_MS);
      await answerCalls();
    }
  }

  async function fetch(): Promise<SessionJob | undefined> {
    return jobs.fetch().catch((err: unknown) => {
      logger.warn({ err }, 'queue.unavailable');
      return delay(REDIS_DEADLINE_MS / 4, undefined);
    });
  }
}

function memberOf({ tenant, session }: { tenant: string; session: string }): string {
  return `${tenant}:${session}`;
}
