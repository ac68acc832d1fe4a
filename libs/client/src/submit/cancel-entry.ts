import { callHost, cancel, notify } from '@shellfleet/mailbox';
import { parseOrThrow, type SessionKeys } from '@shellfleet/protocol';
import { type Sealer, signCancel } from '@shellfleet/sealing';
import { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';
import { attachSession, type OpenContext, type OpenSession } from './open-session.ts';

export interface CancelContext extends FleetContext, OpenContext {
  readonly sealer: Sealer;
  ensureJob(session: OpenSession): Promise<void>;
}

const reasonSchema = z.object({ reason: z.string('must be a string').max(1_024, 'must be at most 1024 characters') });

/** Cancels an entry. Returns false when it had ended before, else true, also after an earlier cancellation. */
export async function cancelEntry(
  context: CancelContext,
  keys: SessionKeys,
  entryId: string,
  given?: string,
): Promise<boolean> {
  const { reason } = parseOrThrow(
    reasonSchema,
    { reason: given || 'cancelled by its caller' },
    'COMMAND_INVALID',
    'The cancellation',
  );
  const signed = signCancel(context.sealer, keys, entryId, reason);
  const cancelled = await cancel(context.redis, keys, entryId, reason, signed);
  switch (cancelled.type) {
    case 'ended': {
      const { event, inbox } = cancelled;
      const notice = { tenant: keys.tenant, session: keys.session, entryId, event, result: '' };
      // The notice is only a hint. Without it the submitter finds the Result by reading the record.
      await notify(context.redis, context.namespace, inbox, notice).catch(() => {});
      if (cancelled.needsJob) await ensureJob(context, keys).catch(() => {});
      return true;
    }
    case 'marked': {
      const { host, generation } = cancelled;
      const { tenant, session } = keys;
      if (host !== '')
        await callHost(context.redis, context.namespace, host, {
          type: 'cancel',
          tenant,
          session,
          generation,
          entry: entryId,
          signed,
        });
      return true;
    }
    case 'ended-before':
    case 'unknown':
      return false;
  }
}

/**
 * Adds a job after a held entry was cancelled, because the entries behind it can start. If this fails, upkeep adds the
 * job.
 */
async function ensureJob(context: CancelContext, keys: SessionKeys): Promise<void> {
  const session = await attachSession(context, keys.session);
  if (session === undefined) return;
  await context.ensureJob(session);
}
