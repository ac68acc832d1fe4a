import { inboxChannel } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Results up to this many bytes are part of the notice. Larger Results are read from the session. */
export const INLINE_RESULT_BYTES = 4_096;

/** Hint that an entry ended. `result` is the wire result's JSON, or empty when it has to be read from the session. */
export interface InboxNotice {
  tenant: string;
  session: string;
  entryId: string;
  event: string;
  result: string;
}

/** Reply to a producer's request. A large reply is stored, and empty here. */
export interface InboxReply {
  id: string;
  sealed: string;
}

export type InboxMessage = ({ type: 'notice' } & InboxNotice) | ({ type: 'reply' } & InboxReply);

/** Publishes that the end of an entry is stored. The hint reaches only a producer that is subscribed. */
export async function notify(redis: Redis, namespace: string, producer: string, notice: InboxNotice): Promise<void> {
  if (producer === '') return;
  const { tenant, session, entryId, event, result } = notice;
  const inline = Buffer.byteLength(result) <= INLINE_RESULT_BYTES ? result : '';
  await redis.publish(
    inboxChannel(namespace, tenant, producer),
    `e ${tenant}:${session} ${entryId} ${event} ${inline}`,
  );
}

export async function sendReply(
  redis: Redis,
  namespace: string,
  { tenant, inbox }: { tenant: string; inbox: string },
  { id, sealed }: InboxReply,
): Promise<void> {
  await redis.publish(inboxChannel(namespace, tenant, inbox), `a ${id} ${sealed}`);
}

/** Parses a message of notify(), finish.lua or sendReply(). Returns undefined for any other text. */
export function parseInboxMessage(message: string): InboxMessage | undefined {
  const notice = NOTICE.exec(message);
  if (notice !== null) {
    const [head, tenant = '', session = '', entryId = '', event = ''] = notice;
    return { type: 'notice', tenant, session, entryId, event, result: message.slice(head.length) };
  }
  const reply = ANSWER.exec(message);
  if (reply === null) return undefined;
  const [head, id = ''] = reply;
  return { type: 'reply', id, sealed: message.slice(head.length) };
}

// Ids have no space and no colon.
const NOTICE = /^e ([^ :]+):([^ :]+) ([^ ]+) (\d+-\d+) /;
const ANSWER = /^a ([^ ]+) /;
