import { readStoredSession } from '@shellfleet/mailbox';
import { newSessionJob, parsePlacement, type QueuedSessions } from '@shellfleet/placement';
import type { SessionKeys } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface LeaveContext extends FleetContext {
  readonly sessions: Pick<QueuedSessions, 'ensureJob' | 'leave'>;
}

/**
 * Removes a closed session from the queue, so that the queue no longer counts it. If this fails, a host drops the job
 * later.
 */
export async function leaveQueue(context: LeaveContext, keys: SessionKeys): Promise<void> {
  const before = await readStoredSession(context.redis, keys);
  if (before?.phase !== 'closed' || before.placementClass === '') return;
  await context.sessions.leave(before.placementClass, keys);
  // The id may be open again, and the first submit of the new session may have found the job that was removed here.
  const now = await readStoredSession(context.redis, keys);
  const placement = parsePlacement(now?.placement ?? '');
  if (now?.phase !== 'open' || now.host !== '' || !now.hasWork || placement === undefined) return;
  await context.sessions.ensureJob(newSessionJob(keys, now.generation, placement));
}
