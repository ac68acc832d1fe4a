import { readStoredSession } from '@shellfleet/mailbox';
import { newSessionJob, parsePlacement, type QueuedSessions } from '@shellfleet/placement';
import type { SessionKeys } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface LeaveContext extends FleetContext {
  readonly sessions: Pick<QueuedSessions, 'ensureJob' | 'leave'>;
}

/** Takes a closed session out of the queue, so that it no longer counts. This may fail: a host then drops the job. */
export async function leaveQueue(context: LeaveContext, keys: SessionKeys): Promise<void> {
  const before = await readStoredSession(context.redis, keys);
  if (before?.phase !== 'closed' || before.placementClass === '') return;
  await context.sessions.leave(before.placementClass, keys);
  // The id may be open again, and its first submit may have found the job that is gone now.
  const now = await readStoredSession(context.redis, keys);
  const placement = parsePlacement(now?.placement ?? '');
  if (now?.phase !== 'open' || now.host !== '' || !now.hasWork || placement === undefined) return;
  await context.sessions.ensureJob(newSessionJob(keys, now.generation, placement));
}
