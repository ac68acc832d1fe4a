import { type Adopted, createHostMailbox, type HostMailbox, type HostMailboxOptions } from '@shellfleet/mailbox';
import type { SessionJob } from '@shellfleet/placement';
import { isShellfleetError, type SessionKeys, ShellfleetError, sessionKeys } from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import { type Lease, lockMsOf } from '../lease/leases.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Hosting } from './hosting.ts';
import { leaveUnopened } from './leave-unopened.ts';
import { tryOpenSpec } from './open-spec.ts';
import { createSessionParts, type SessionParts } from './session-parts.ts';

interface AdoptedSession {
  adopted: Adopted;
  parts: SessionParts;
  /** Whether the operator's settings still let this host run such sessions. */
  isOffered: boolean;
}

/**
 * Becomes the owner of the session of a locked job. If this host cannot serve the session, removes its sandbox `found`,
 * removes the job or leaves it to other hosts, and returns undefined.
 */
export async function adoptSession(
  job: SessionJob,
  found: Sandbox | undefined,
  lease: Lease,
  hosting: Hosting,
  host: SessionHost,
): Promise<AdoptedSession | undefined> {
  const keys = sessionKeys(host.namespace, job.tenant, job.session);
  const mailbox = await becomeOwner(job, keys, host, {
    signal: hosting.lost,
    onFenced: () => hosting.become('fenced'),
  });
  if (mailbox === undefined) {
    await found?.remove();
    return undefined;
  }
  const { placementClass, data } = job;
  const asked = { placementClass, generation: data?.generation };
  const adopted = await mailbox.adopt(asked);
  if (adopted.type !== 'adopted') {
    await found?.remove();
    if (adopted.type !== 'fenced') await mailbox.retry(() => host.jobs.remove(job));
    return undefined;
  }
  const spec = tryOpenSpec(adopted, keys, host.sealer);
  if (isShellfleetError(spec)) {
    await leaveUnopened(spec, { ...host, ...{ job, adopted, found, mailbox, lease, signal: hosting.lost } });
    return undefined;
  }
  const parts = createSessionParts({ job, adopted, spec, mailbox, lease, hosting }, host);
  lease.own(mailbox.owner.fence, lockMsOf(spec));
  const isOffered = host.offers(placementClass) && (await host.serves(spec));
  return { adopted, parts, isOffered };
}

/** Requests a fence for the session of a locked job. Returns undefined when another host has it. */
async function becomeOwner(
  job: SessionJob,
  keys: SessionKeys,
  { redis, hostId, boot, jobs, logger }: SessionHost,
  options: HostMailboxOptions,
): Promise<HostMailbox | undefined> {
  const acquired = await retryWhileRedisIsDown(() => jobs.acquire(job), options.signal);
  if (acquired.type === 'held-in-other-class') throw heldInOtherClass(job, acquired.holder);
  if (acquired.type === 'refused') {
    logger.warn({ 'other.host.id': acquired.holder }, 'lease.refused');
    return undefined;
  }
  return createHostMailbox({ redis, keys, fence: acquired.fence, host: hostId, boot }, options);
}

/** Returns the error for a session that has a job in two queues. The older job is removed when a host fetches it. */
function heldInOtherClass({ session }: SessionJob, holder: string): ShellfleetError {
  return new ShellfleetError(
    'LEASE_LOST',
    `Host ${holder} holds session ${session} through a job in the queue of another execution policy.`,
  );
}
