import { newSessionJob, parsePlacement } from '@shellfleet/admission';
import { forget, notify, recordNotice, retentionOf, type SessionState, sweep } from '@shellfleet/mailbox';
import { ATTRIBUTES, type SessionKeys } from '@shellfleet/protocol';
import type { FoundSession } from './read-page.ts';
import type { UpkeepDeps, UpkeepMemory } from './upkeep-deps.ts';

/** How often a session is swept while entries run or wait in it, and while it is idle. */
const SWEEP_ACTIVE_MS = 5_000;
const SWEEP_IDLE_MS = 60_000;

/** Compares one session with the guarantees of upkeep, and restores those that do not hold. */
export async function reconcile(session: FoundSession, deps: UpkeepDeps, memory: UpkeepMemory): Promise<void> {
  const { redis, fleet } = deps;
  const { keys, state, hostAlive } = session;
  if (state === undefined || state.life === 'closed') {
    memory.sweptAt.delete(keys.member);
    await forget(redis, fleet, keys.member, session.score);
    return;
  }
  if (state.host !== '' && !hostAlive) await publishUnreachable(keys, state, deps);
  const now = performance.now();
  // A held head is no work for a host, but its start deadline may pass.
  const isActive = state.hasWork || state.waiting > 0;
  const interval = isActive ? SWEEP_ACTIVE_MS : SWEEP_IDLE_MS;
  const due = now - (memory.sweptAt.get(keys.member) ?? Number.NEGATIVE_INFINITY) >= interval;
  if (due) {
    memory.sweptAt.set(keys.member, now);
    await sweepAndNotify(keys, deps, memory.streamBytes);
  }
  if (state.hasWork && (due || !hostAlive)) await ensureJob(keys, state, deps);
}

/** UPKEEP-3 */
async function sweepAndNotify(keys: SessionKeys, { redis }: UpkeepDeps, streamBytes: number): Promise<void> {
  const { tenant, session } = keys;
  const { ended } = await sweep(redis, keys, { retentionMs: retentionOf(redis, keys.namespace), streamBytes });
  for (const { inbox, entryId, event } of ended) {
    await notify(redis, keys.namespace, inbox, { tenant, session, entryId, event, result: '' });
  }
}

/** UPKEEP-1 */
async function ensureJob(
  keys: SessionKeys,
  { generation, placement }: SessionState,
  { jobs, logger }: UpkeepDeps,
): Promise<void> {
  const log = { [ATTRIBUTES.sessionId]: keys.session };
  const parsed = parsePlacement(placement);
  // Its next submit adds a job made from the sealed spec.
  if (parsed === undefined) return logger.error(log, 'session.placement-invalid');
  const job = newSessionJob(keys, generation, parsed);
  if (await jobs.has(job)) return;
  logger.info(log, 'session.requeued');
  await jobs.ensure(job);
}

/** UPKEEP-2: a live host keeps its heartbeat key from expiring. */
async function publishUnreachable(
  keys: SessionKeys,
  { host, fence }: SessionState,
  { redis, logger }: UpkeepDeps,
): Promise<void> {
  if (!(await recordNotice(redis, keys, fence, 'host.unreachable', { hostId: host }))) return;
  logger.warn({ 'host.id': host, [ATTRIBUTES.sessionId]: keys.session }, 'host.unreachable');
}
