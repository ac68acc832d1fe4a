import { createHostMailbox, type HostMailbox, type HostMailboxOptions } from '@shellfleet/mailbox';
import type { SessionJob } from '@shellfleet/placement';
import { type SessionKeys, ShellfleetError } from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { SessionHost } from '../run/host-services.ts';

/** Requests a fence for the session of a locked job. Returns undefined when another host has it. */
export async function becomeOwner(
  job: SessionJob,
  keys: SessionKeys,
  { redis, hostId, boot, jobs, logger }: SessionHost,
  options: HostMailboxOptions,
): Promise<HostMailbox | undefined> {
  const acquired = await retryWhileRedisIsDown(() => jobs.acquire(job), options.signal);
  if (acquired.type === 'held-in-other-class') throw heldInOtherClass(job, acquired.holder);
  if (acquired.type === 'refused') {
    logger.warn({ holder: acquired.holder }, 'lease.refused');
    return undefined;
  }
  return createHostMailbox({ redis, keys, fence: acquired.fence, host: hostId, boot }, options);
}

/** Returns the error while two queues hold a job of the session. The fetch of the older one removes it. */
function heldInOtherClass({ session }: SessionJob, holder: string): ShellfleetError {
  return new ShellfleetError(
    'LEASE_LOST',
    `Host ${holder} holds session ${session} through a job in the queue of another execution policy.`,
  );
}
