import type { Adopted, HostMailbox } from '@shellfleet/mailbox';
import type { PlacementClass, SessionJob, SessionJobs } from '@shellfleet/placement';
import { newResult, type ShellfleetError } from '@shellfleet/protocol';
import type { Audit } from '../audit/audit.ts';
import type { Lease } from '../lease/leases.ts';
import type { Logger } from '../log/logger.ts';
import { timesOf } from '../run/entry-times.ts';
import { SessionTimes } from '../run/session-times.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { NEVER_OPENED } from '../shell/opening.ts';

interface UnopenedSession {
  adopted: Adopted;
  found: Sandbox | undefined;
  mailbox: HostMailbox;
  job: SessionJob;
  lease: Lease;
  jobs: SessionJobs;
  /** Tells whether this host offers a placement class. */
  offers(name: PlacementClass): boolean;
  audit: Pick<Audit, 'recorded'>;
  logger: Logger;
  signal: AbortSignal;
}

/**
 * Leaves a session whose sealed spec this host cannot open: to other hosts if they may have the key or version.
 * Otherwise everything that waits ends with the error.
 */
export async function leaveUnopened(error: ShellfleetError, session: UnopenedSession): Promise<void> {
  const { adopted, found, mailbox, job, jobs, signal } = session;
  const { epoch } = adopted;
  const isForOthers = !session.offers(job.placementClass);
  session.logger.error({ err: error, isForOthers }, 'session.refused');
  await found?.remove();
  // A refused signature is recorded in the audit first, if the disk takes it.
  if (error.code === 'UNAUTHORIZED') await session.audit.recorded(mailbox.owner.keys.tenant).catch(() => {});
  const times = new SessionTimes(adopted);
  const shell = { state: 'lost', reason: 'its host could not open its spec', epoch } as const;
  if (adopted.running !== undefined) {
    const { id, inbox } = adopted.running;
    const rest = { shell, ...timesOf(adopted.running, times, NEVER_OPENED) };
    const result = newResult({ outcome: 'lost', reason: 'container-removed' }, rest);
    await mailbox.finish(id, { result, epoch, takeNext: false, inbox });
  }
  while (!isForOthers && !signal.aborted) {
    const head = await mailbox.peek();
    if (head === undefined) break;
    const { id, inbox } = head.entry;
    const rest = timesOf(head.entry, times, NEVER_OPENED);
    const result = newResult({ outcome: 'error', error: error.toJSON() }, rest);
    await mailbox.finish(id, { result, epoch, takeNext: false, inbox });
  }
  if (signal.aborted) return;
  await mailbox.release(found === undefined ? 'queued' : 'lost', undefined, 'leave');
  // A later renewal would take the lock from the next owner.
  session.lease.end();
  await mailbox.retry(() => (isForOthers ? jobs.putBack(job) : jobs.remove(job)));
}
