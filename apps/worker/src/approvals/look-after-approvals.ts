import {
  type Asker,
  expireQuestions,
  forgetAskingTenant,
  readAskers,
  readSessionState,
  toAsker,
  withdrawAskers,
} from '@shellfleet/mailbox';
import { type ApprovalKeys, approvalKeys, type FleetKeys, sessionKeys, tenantIdSchema } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Audit } from '../audit/audit.ts';
import type { Settling } from '../lease/settling.ts';
import type { HostApprovals } from './host-approvals.ts';
import { type SessionJobsOfAnswers, tellDecided } from './tell-decided.ts';

// Ends questions in time, and restores what a process left between two steps. Every worker runs it; a short lock in Redis keeps the rounds of
// several workers from overlapping.

const INTERVAL_MS = 1_000;
/** What was decided this long ago and was not told has lost the process that decided it. */
const TELL_AGAIN_AFTER_MS = 2_000;
/** Entries that ask, looked at in one round. */
const PAGE = 500;
/** A tenant that has asked nothing for so long leaves the list. */
const FORGET_AFTER_MS = 60_000;

interface LookDeps {
  redis: Redis;
  fleet: FleetKeys;
  approvals: HostApprovals;
  jobs: SessionJobsOfAnswers;
  audit: Pick<Audit, 'note'>;
  logger: Logger;
}

interface Memory {
  /** By tenant: where the look at those that ask goes on. */
  from: Map<string, number>;
  /** Entries that asked and were not held in the look before: a host may be about to hold them. */
  suspects: Set<string>;
}

export function lookAfterApprovals(deps: LookDeps, settling: Pick<Settling, 'settled'>): { close(): Promise<void> } {
  const memory: Memory = { from: new Map(), suspects: new Set() };
  let round: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (!settling.settled) return;
    round ??= runRound(deps, memory)
      .catch((err: unknown) => deps.logger.warn({ err }, 'approvals.failed'))
      .finally(() => {
        round = undefined;
      });
  }, INTERVAL_MS);
  return {
    async close() {
      clearInterval(timer);
      await round;
    },
  };
}

async function runRound(deps: LookDeps, memory: Memory): Promise<void> {
  const { redis, fleet } = deps;
  const pairs = await redis.zrange(fleet.asking, '0', '-1', 'WITHSCORES');
  if (pairs.length === 0) return;
  const lockMs = Math.floor(INTERVAL_MS * 0.9);
  if ((await redis.set(`${fleet.admission}:asking-lock`, '1', 'PX', lockMs, 'NX')) === null) return;
  const [seconds = 0] = (await redis.time()).map(Number);
  const nowMs = seconds * 1_000;
  for (let index = 0; index < pairs.length; index += 2) {
    const [tenant = '', score = ''] = pairs.slice(index, index + 2);
    if (!tenantIdSchema.safeParse(tenant).success) await redis.zrem(fleet.asking, tenant);
    else await lookAfterTenant(tenant, score, nowMs, deps, memory);
  }
}

async function lookAfterTenant(tenant: string, score: string, nowMs: number, deps: LookDeps, memory: Memory) {
  const { redis, fleet, approvals } = deps;
  const keys = approvalKeys(fleet.namespace, tenant);
  if ((await redis.xlen(keys.answers)) > 0) await approvals.apply(tenant);
  if ((await expireQuestions(redis, keys)) > 0) await tellDecided(keys, deps);
  else await tellDecided(keys, deps, nowMs - TELL_AGAIN_AFTER_MS);
  await withdrawGone(keys, deps, memory);
  const [pending, decided] = await Promise.all([redis.zcard(keys.pending), redis.zcard(keys.decided)]);
  if (pending === 0 && decided === 0 && Number(score) < nowMs - FORGET_AFTER_MS)
    await forgetAskingTenant(redis, fleet.asking, tenant, score);
}

/** Removes the entries that ask and are not held: they were cancelled, overdue, or their session was closed. */
async function withdrawGone(keys: ApprovalKeys, { redis }: LookDeps, { from, suspects }: Memory): Promise<void> {
  const start = from.get(keys.tenant) ?? 0;
  const askers = await readAskers(redis, keys, start, PAGE);
  from.set(keys.tenant, askers.length < PAGE ? 0 : start + PAGE);
  const isHeld = await Promise.all(askers.map((asker) => holds(redis, keys, asker)));
  const loose = askers.filter((_asker, index) => !isHeld[index]);
  const nameOf = (asker: Asker) => `${keys.tenant} ${toAsker(asker)}`;
  await withdrawAskers(
    redis,
    keys,
    loose.filter((asker) => suspects.has(nameOf(asker))),
  );
  for (const asker of askers) suspects.delete(nameOf(asker));
  for (const asker of loose) suspects.add(nameOf(asker));
}

async function holds(redis: Redis, keys: ApprovalKeys, { session, generation, entryId }: Asker): Promise<boolean> {
  const state = await readSessionState(redis, sessionKeys(keys.namespace, keys.tenant, session));
  return state?.generation === generation && state.held === entryId;
}
