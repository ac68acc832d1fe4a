import { type Owner, retryWhileRedisIsDown } from '@shellfleet/mailbox';
import type { SessionJob } from '@shellfleet/placement';
import { type SessionKeys, ShellfleetError } from '@shellfleet/protocol';
import type { SessionDeps } from './session-parts.ts';

/** Asks for a fence for the session of a job that this host has locked. Undefined when another host has it. */
export async function becomeOwner(
  job: SessionJob,
  keys: SessionKeys,
  { redis, hostId, boot, jobs, logger }: SessionDeps,
  signal: AbortSignal,
): Promise<Owner | undefined> {
  const granted = await retryWhileRedisIsDown(() => jobs.grant(job), signal);
  if (granted.type === 'held-in-other-class') throw heldInOtherClass(job, granted.holder);
  if (granted.type === 'refused') {
    logger.warn({ holder: granted.holder }, 'lease.refused');
    return undefined;
  }
  return { redis, keys, fence: granted.fence, host: hostId, boot };
}

/** Thrown while two queues hold a job of the session: the other one was left from an earlier life of its id, and goes when it is fetched. */
function heldInOtherClass({ session }: SessionJob, holder: string): ShellfleetError {
  return new ShellfleetError(
    'LEASE_LOST',
    `Host ${holder} holds session ${session} through a job in the queue of another execution policy.`,
  );
}
