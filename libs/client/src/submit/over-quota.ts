import type { Submitted } from '@shellfleet/mailbox';
import { ShellfleetError } from '@shellfleet/protocol';

type OverQuota = Extract<Submitted, { type: 'over-quota' }>;

/** What a quota counts, what makes room, and when it is worthwhile to submit again. */
const QUOTAS: Record<OverQuota['quota'], { counts: string; frees: string; retryAfterMs: number }> = {
  maxQueued: {
    counts: 'waiting commands',
    frees: 'There is room as soon as one of them starts or is cancelled.',
    retryAfterMs: 1_000,
  },
  maxDiskBytes: {
    counts: 'bytes on the disks of its hosts',
    frees: 'Closing sessions or restarting them makes room within seconds, removing files within a minute.',
    retryAfterMs: 10_000,
  },
};

/** Returns the error of a submit whose tenant is at one of its quotas. */
export function overQuota(tenant: string, { quota, used, limit }: OverQuota): ShellfleetError {
  const { counts, frees, retryAfterMs } = QUOTAS[quota];
  return new ShellfleetError(
    'QUOTA_EXCEEDED',
    `Tenant ${tenant} has ${used} ${counts}, and its quota (${quota}) is ${limit}. ${frees}`,
    { quota, used, limit, retryAfterMs },
  );
}
