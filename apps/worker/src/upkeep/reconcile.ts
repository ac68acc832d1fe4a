import {
  answerHeld,
  forget,
  isAsking,
  notify,
  postpone,
  type StoredSession,
  type Swept,
  sweep,
} from '@shellfleet/mailbox';
import { newSessionJob, parseClass, parsePlacement } from '@shellfleet/placement';
import { ATTRIBUTES, approvalKeys, LIMITS, SCHEMA_VERSION, type SessionKeys, toCommandId } from '@shellfleet/protocol';
import { publishUnreachable } from './publish-unreachable.ts';
import type { FoundSession } from './read-due.ts';
import { endIfKeyUnknown } from './unknown-key.ts';
import { type SeenSession, sessionFields, type UpkeepDeps, type UpkeepMemory } from './upkeep-deps.ts';

/** Interval of sweeps while the session has entries, once after that, and while Redis is too full. */
const SWEEP_ACTIVE_MS = 5_000;
const SWEEP_IDLE_MS = 60_000;

/** Restores the guarantees of upkeep for one session. `nowMs` is the time by Redis' clock. */
export async function reconcile(
  session: FoundSession,
  nowMs: number,
  deps: UpkeepDeps,
  memory: UpkeepMemory,
): Promise<void> {
  const { redis } = deps;
  const { keys, state, owner } = session;
  if (state === undefined || state.phase === 'closed') {
    const isListed = state !== undefined && !state.isDiscarded;
    await forget(redis, keys, session.score, isListed ? deps.retentionMs : undefined);
    return;
  }
  const hostAlive = owner === 'alive';
  if (owner !== '' && !hostAlive) await publishUnreachable(keys, state, deps);
  const seen = memory.seen.get(keys.member);
  const now = performance.now();
  // A held head is not work for a host, but its start deadline may pass.
  const isActive = state.hasWork || state.waiting > 0;
  const isQuiet = !isActive && !hostAlive && now - (seen?.since ?? now) >= deps.quietMs;
  if (seen !== undefined && (await releaseLoose(keys, state, seen, deps))) return;
  const isTooFull = memory.streamBytes < LIMITS.sessionStreamBytes;
  const interval = isActive || isTooFull || seen?.sweptActive === true ? SWEEP_ACTIVE_MS : SWEEP_IDLE_MS;
  const due = isQuiet || now - (seen?.sweptAt ?? Number.NEGATIVE_INFINITY) >= interval;
  const limits = { streamBytes: memory.streamBytes, ownerGone: owner === 'gone' };
  const swept = due ? await sweepAndNotify(keys, deps, limits) : undefined;
  if (due && seen !== undefined) Object.assign(seen, { sweptAt: now, sweptActive: isActive });
  if (state.hasWork && (due || !hostAlive)) await ensureJob(keys, state, seen, deps);
  // If the generation has just ended, the next round removes the session from the index.
  if (isQuiet && swept?.phase === 'open') await postponeIdle(session, state, nowMs, deps);
}

/** Sets when upkeep next reads the session: when its generation expires or its stream may need a trim (UPKEEP-5). */
async function postponeIdle(
  { keys, score }: FoundSession,
  { activeAt }: StoredSession,
  nowMs: number,
  { redis, retentionMs }: UpkeepDeps,
): Promise<void> {
  const untilEndMs = activeAt + retentionMs - nowMs;
  const trimEveryMs = retentionMs / 4;
  const delayMs = untilEndMs > 0 ? Math.min(untilEndMs + 1, trimEveryMs) : trimEveryMs;
  await postpone(redis, keys, score, delayMs);
}

/**
 * Releases a held head that asked nothing in two rounds (UPKEEP-8). In one of them a process may be between two steps.
 */
async function releaseLoose(
  keys: SessionKeys,
  { held, generation }: StoredSession,
  seen: SeenSession,
  { redis, logger }: UpkeepDeps,
): Promise<boolean> {
  const asker = { session: keys.session, generation, entryId: held };
  const isLoose = held !== '' && !(await isAsking(redis, approvalKeys(keys.namespace, keys.tenant), asker));
  const wasLoose = seen.loose === held;
  seen.loose = isLoose ? held : undefined;
  if (!isLoose || !wasLoose) return false;
  logger.warn({ ...sessionFields(keys), [ATTRIBUTES.commandId]: toCommandId(keys.session, held) }, 'command.released');
  // The next round adds the job that the session needs.
  await answerHeld(redis, keys, held, { type: 'release' });
  return true;
}

/** Deletes expired data, ends overdue entries and unused generations (UPKEEP-3, UPKEEP-4). */
export async function sweepAndNotify(
  keys: SessionKeys,
  { redis, retentionMs }: UpkeepDeps,
  limits: { streamBytes: number; ownerGone?: boolean },
): Promise<Swept> {
  const { tenant, session } = keys;
  const swept = await sweep(redis, keys, { retentionMs, ...limits });
  for (const { inbox, entryId, event } of swept.ended) {
    // A full Redis refuses the notice. Its loss does no harm, because a notice is only a hint.
    await notify(redis, keys.namespace, inbox, { tenant, session, entryId, event, result: '' }).catch(() => {});
  }
  return swept;
}

/** Adds the session's job if it is missing (UPKEEP-1). */
async function ensureJob(
  keys: SessionKeys,
  state: StoredSession,
  seen: SeenSession | undefined,
  deps: UpkeepDeps,
): Promise<void> {
  const { jobs, logger } = deps;
  const log = sessionFields(keys);
  // Only newer hosts understand this class, so they add the job.
  if ((parseClass(state.placementClass)?.schema ?? 0) > SCHEMA_VERSION) return;
  const parsed = parsePlacement(state.placement);
  // The session's next submit adds a job made from the sealed spec.
  if (parsed === undefined) return logger.error(log, 'session.placement-invalid');
  if (seen !== undefined && (await endIfKeyUnknown(keys, state, parsed, seen, deps))) return;
  const job = newSessionJob(keys, state.generation, parsed);
  if (await jobs.has(job)) return;
  logger.info(log, 'session.requeued');
  await jobs.ensure(job);
}
