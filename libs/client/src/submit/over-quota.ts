import type { Submitted } from '@shellfleet/mailbox';
import { ShellfleetError } from '@shellfleet/protocol';

/** Interval at which a submit at the quota of waiting commands may be repeated. Any start of a command makes room. */
const QUEUED_RETRY_MS = 1_000;

/** Returns the error of a submit whose tenant is at one of its quotas. */
export function overQuota(
  tenant: string,
  { quota, used, limit }: Extract<Submitted, { type: 'over-quota' }>,
): ShellfleetError {
  return new ShellfleetError(
    'QUOTA_EXCEEDED',
    `Tenant ${tenant} has ${used} waiting commands, and its quota (${quota}) is ${limit}. There is room as soon as one of them starts or is cancelled.`,
    { quota, used, limit, retryAfterMs: QUEUED_RETRY_MS },
  );
}
