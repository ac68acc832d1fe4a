import { randomInt } from 'node:crypto';
import {
  type Asker,
  expireQuestions,
  forgetAskingTenant,
  isWanted,
  readAskers,
  readSessionState,
  withdrawAskers,
} from '@shellfleet/mailbox';
import {
  type ApprovalKeys,
  approvalKeys,
  type FleetKeys,
  sessionKeys,
  TOOL_ASKER,
  tenantIdSchema,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Audit } from '../audit/audit.ts';
import type { Settling } from '../lease/settling.ts';
import { answerHeldEntries, type SessionJobsOfAnswers } from './answer-held-entries.ts';
import type { HostApprovals } from './host-approvals.ts';

// Ends questions in time, and restores what a process left between two steps. Every worker runs it; a short lock in Redis keeps the rounds of
// several workers from overlapping.

const INTERVAL_MS = 1_000;
/** An entry is held within this time after it has asked. One that is held later, and does not ask any more, is released (HOST-APPROVALS-3). */
const HELD_WITHIN_MS = 2_000;
/** What was decided this long ago and was not told has lost the process that decided it. */
const TELL_AGAIN_AFTER_MS = 2_000;
/** Entries that ask, looked at in one round. */
const PAGE = 500;
/** A tenant that has asked nothing for so long leaves the list. */
const FORGET_AFTER_MS = 60_000;

interface UpkeepDeps {
  redis: Redis;
  fleet: FleetKeys;
  approvals: HostApprovals;
  jobs: SessionJobsOfAnswers;
  audit: Pick<Audit, 'note'>;
  logger: Logger;
}

/** By tenant: when it asked last, as the list has it, and since when this process has seen that there (ms, monotonic clock). */
type Memory = Map<string, { score: string; since: number }>;

export function startApprovalsUpkeep(
  deps: UpkeepDeps,
  settling: Pick<Settling, 'settled'>,
): { close(): Promise<void> } {
  const memory: Memory = new Map();
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

async function runRound(deps: UpkeepDeps, memory: Memory): Promise<void> {
  const { redis, fleet } = deps;
  const pairs = await redis.zrange(fleet.asking, '0', '-1', 'WITHSCORES');
  if (pairs.length === 0) return;
  const lockMs = Math.floor(INTERVAL_MS * 0.9);
  if ((await redis.set(fleet.askingLock, '1', 'PX', lockMs, 'NX')) === null) return;
  const [seconds = 0] = (await redis.time()).map(Number);
  const nowMs = seconds * 1_000;
  const listed = new Map<string, string>();
  for (let index = 0; index < pairs.length; index += 2) listed.set(pairs[index] ?? '', pairs[index + 1] ?? '');
  for (const tenant of memory.keys()) if (!listed.has(tenant)) memory.delete(tenant);
  for (const [tenant, score] of listed) {
    if (!tenantIdSchema.safeParse(tenant).success) await redis.zrem(fleet.asking, tenant);
    // What is wrong with one tenant stops no other.
    else
      await keepUpTenant(tenant, score, nowMs, deps, memory).catch((err: unknown) =>
        deps.logger.warn({ err }, 'approvals.failed'),
      );
  }
}

async function keepUpTenant(tenant: string, score: string, nowMs: number, deps: UpkeepDeps, memory: Memory) {
  const { redis, fleet, approvals } = deps;
  const keys = approvalKeys(fleet.namespace, tenant);
  if ((await redis.xlen(keys.answers)) > 0) await approvals.apply(tenant);
  if ((await expireQuestions(redis, keys)) > 0) await answerHeldEntries(keys, deps);
  else await answerHeldEntries(keys, deps, nowMs - TELL_AGAIN_AFTER_MS);
  const [pending, decided, answers] = await Promise.all([
    redis.zcard(keys.pending),
    redis.zcard(keys.decided),
    redis.xlen(keys.answers),
  ]);
  if (pending > 0) await withdrawGone(keys, pending, deps);
  const known = memory.get(tenant);
  const seen = known?.score === score ? known : { score, since: performance.now() };
  memory.set(tenant, seen);
  if (pending + decided + answers === 0 && performance.now() - seen.since > FORGET_AFTER_MS)
    await forgetAskingTenant(redis, keys, score);
}

/**
 * Removes what asks and is not wanted: entries that are not held, because they were cancelled, overdue, or their session was closed, and what
 * is asked about beside the mailboxes and has lost its caller. A round looks at one page of them,
 * whichever: rounds of other hosts come between those of this one.
 */
async function withdrawGone(keys: ApprovalKeys, pending: number, { redis }: UpkeepDeps): Promise<void> {
  const askers = await readAskers(redis, keys, randomInt(Math.ceil(pending / PAGE)) * PAGE, PAGE);
  const isHeld = await Promise.all(askers.map((asker) => holds(redis, keys, asker)));
  const loose = askers.filter((_asker, index) => !isHeld[index]);
  await withdrawAskers(redis, keys, loose, HELD_WITHIN_MS);
}

/** The entry is held, or what is asked about beside the mailbox is still wanted. */
async function holds(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<boolean> {
  const { session, generation, entryId } = asker;
  if (session === TOOL_ASKER) return isWanted(redis, keys, asker);
  const state = await readSessionState(redis, sessionKeys(keys.namespace, keys.tenant, session));
  if (state?.generation !== generation) return false;
  return state.held === entryId || (state.life === 'open' && (await isWanted(redis, keys, asker)));
}
