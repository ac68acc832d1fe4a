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
import type { Audit } from '../audit/audit.ts';
import type { Settling } from '../lease/settling.ts';
import type { Logger } from '../log/logger.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import { answerHeldEntries, type SessionJobsOfAnswers } from './answer-held-entries.ts';
import type { HostApprovals } from './host-approvals.ts';

// Ends expired questions, and repairs what a process left between two steps. All workers take turns by a lock in Redis.

const INTERVAL_MS = 1_000;
/** Age at which an undelivered decision counts as left behind by a dead process. */
const DELIVER_AFTER_MS = 2_000;
/** Askers of a tenant that one round reads. */
const PAGE = 500;
/** Time after which a tenant that asks nothing leaves the list. */
const FORGET_AFTER_MS = 60_000;

interface UpkeepDeps {
  redis: Redis;
  fleet: FleetKeys;
  approvals: HostApprovals;
  jobs: SessionJobsOfAnswers;
  audit: Pick<Audit, 'note'>;
  metrics?: Pick<WorkerMetrics, 'heldEnded'> | undefined;
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
    // Removes the mark of a new question first, so that a question during the round marks the tenant again.
    if (isNew) await keepAsking(redis, fleet, tenant, nowMs);
    // A problem with one tenant does not stop the others.
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
  // Each round reads one page of the askers, at a random position, because other hosts do the rounds in between.
  if (pending > 0) {
    const page = randomInt(Math.ceil(pending / PAGE));
    await withdrawEnded(redis, keys, await readAskers(redis, keys, page * PAGE, PAGE));
  }
  return pending + decided + answers > 0;
}
