import { cancel, notify } from '@shellfleet/mailbox';
import { parseOrThrow, type SessionKeys } from '@shellfleet/protocol';
import { z } from 'zod';
import type { Producer } from '../producer.ts';
import { callHost } from './call-host.ts';
import { attachSession } from './open-session.ts';

const reasonSchema = z.object({ reason: z.string('must be a string').max(1_024, 'must be at most 1024 characters') });

/** True: it ends as a cancellation because of this call (or an earlier one like it). False: it had ended. */
export async function cancelEntry(
  producer: Producer,
  keys: SessionKeys,
  entryId: string,
  given = 'cancelled by its caller',
): Promise<boolean> {
  const { reason } = parseOrThrow(reasonSchema, { reason: given }, 'COMMAND_INVALID', 'The cancellation');
  const cancelled = await cancel(producer.redis, keys, entryId, reason);
  switch (cancelled.type) {
    case 'ended': {
      const { event, inbox } = cancelled;
      const notice = { tenant: keys.tenant, session: keys.session, entryId, event, result: '' };
      // A hint; whoever waits finds the result without it.
      await notify(producer.redis, producer.namespace, inbox, notice).catch(() => {});
      if (cancelled.needsJob) await ensureJob(producer, keys).catch(() => {});
      return true;
    }
    case 'marked': {
      const call = { type: 'cancel', tenant: keys.tenant, session: keys.session, entry: entryId } as const;
      if (cancelled.host !== '') await callHost(producer, cancelled.host, call);
      return true;
    }
    case 'ended-before':
    case 'unknown':
      return false;
  }
}

/** The entry was held, and what waits behind it can be started. Upkeep adds the job when this fails. */
async function ensureJob(producer: Producer, keys: SessionKeys): Promise<void> {
  const session = await attachSession(producer, keys.session);
  if (session === undefined) return;
  await producer.ensureJob(session);
}
