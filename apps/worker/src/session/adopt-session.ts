import type { Adopted } from '@shellfleet/mailbox';
import type { SessionJob } from '@shellfleet/placement';
import { isShellfleetError, sessionKeys } from '@shellfleet/protocol';
import { LEASE_MS, type Lease } from '../lease/leases.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { becomeOwner } from './become-owner.ts';
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
 * Becomes the owner of the session of a locked job. Returns undefined when it is not for this host; its sandbox `found`
 * is removed then, and its job is where it belongs.
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
  lease.own(mailbox.owner.fence, LEASE_MS + spec.hostGraceMs);
  const isOffered = host.offers.includes(placementClass) && (await host.serves(spec));
  return { adopted, parts, isOffered };
}
