import { randomInt } from 'node:crypto';
import { type Repetition, repeat } from '@shellfleet/concurrency';
import {
  expireQuestions,
  forgetQuietTenants,
  keepAsking,
  readAskers,
  readAskingTenants,
  withdrawEnded,
} from '@shellfleet/mailbox';
import { approvalKeys, type FleetKeys, tenantIdSchema } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Audit } from '../audit/audit.ts';
import type { Settling } from '../lease/settling.ts';
import { answerHeldEntries, type SessionJobsOfAnswers } from './answer-held-entries.ts';
import type { HostApprovals } from './host-approvals.ts';

// Upkeep of approvals: ends questions in time, and restores what a process left between two steps. Every worker runs
// it; a short lock in Redis keeps the rounds of several workers from overlapping.

const INTERVAL_MS = 1_000;
/** Time after which a decision that its session has not received has lost the process that made it. */
const DELIVER_AFTER_MS = 2_000;
/** Askers of a tenant that one round looks at. */
const PAGE = 500;
/** Time after which a tenant that asks nothing leaves the list. */
const FORGET_AFTER_MS = 60_000;

interface UpkeepDeps {
  redis: Redis;
  fleet: FleetKeys;
  approvals: HostApprovals;
  jobs: SessionJobsOfAnswers;
  audit: Pick<Audit, 'note'>;
  logger: Logger;
}

export function startApprovalsUpkeep(deps: UpkeepDeps, settling: Pick<Settling, 'settled'>): Repetition {
  return repeat(() => runRound(deps), {
    everyMs: INTERVAL_MS,
    mayBegin: () => settling.settled,
    onError: (err) => deps.logger.warn({ err }, 'approvals.failed'),
  });
}

async function runRound(deps: UpkeepDeps): Promise<void> {
  const { redis, fleet, logger } = deps;
  const tenants = await readAskingTenants(redis, fleet);
  if (tenants.length === 0) return;
  const lockMs = Math.floor(INTERVAL_MS * 0.9);
  if ((await redis.set(fleet.askingLock, '1', 'PX', lockMs, 'NX')) === null) return;
  const [seconds = 0] = (await redis.time()).map(Number);
  const nowMs = seconds * 1_000;
  for (const { tenant, isNew } of tenants) {
    if (!tenantIdSchema.safeParse(tenant).success) {
      await redis.zrem(fleet.asking, tenant);
      continue;
    }
    // Before the look: a tenant that asks during it is new again.
    if (isNew) await keepAsking(redis, fleet, tenant, nowMs);
    // What is wrong with one tenant stops no other.
    const asks = await keepUpTenant(tenant, nowMs, deps).catch((err: unknown) => {
      logger.warn({ err }, 'approvals.failed');
      return true;
    });
    if (asks) await keepAsking(redis, fleet, tenant, nowMs);
  }
  await forgetQuietTenants(redis, fleet, nowMs - FORGET_AFTER_MS);
}

/** Returns whether anything of the tenant waits. */
async function keepUpTenant(tenant: string, nowMs: number, deps: UpkeepDeps): Promise<boolean> {
  const { redis, fleet, approvals } = deps;
  const keys = approvalKeys(fleet.namespace, tenant);
  if ((await redis.xlen(keys.answers)) > 0) await approvals.apply(tenant);
  const expired = await expireQuestions(redis, keys);
  await answerHeldEntries(keys, deps, expired > 0 ? undefined : nowMs - DELIVER_AFTER_MS);
  const [pending, decided, answers] = await Promise.all([
    redis.zcard(keys.pending),
    redis.zcard(keys.decided),
    redis.xlen(keys.answers),
  ]);
  // A round looks at one page of the askers, whichever: rounds of other hosts come between those of this one.
  if (pending > 0) {
    const page = randomInt(Math.ceil(pending / PAGE));
    await withdrawEnded(redis, keys, await readAskers(redis, keys, page * PAGE, PAGE));
  }
  return pending + decided + answers > 0;
}
