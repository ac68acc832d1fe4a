import { inboxChannel } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Results up to this many bytes are part of the notice itself; larger ones are read from the session. finish.lua gets it as an argument. */
export const INLINE_RESULT_BYTES = 4_096;

/** A hint that an entry ended. `result` is the wire result's JSON, or empty when it has to be read from the session. */
export interface InboxNotice {
  tenant: string;
  session: string;
  entryId: string;
  /** id of the terminal event in the session's stream */
  event: string;
  result: string;
}

/** The answer to a producer's question. An empty one has to be read where it is stored: a large answer would delay every notice behind it. */
export interface InboxAnswer {
  /** of the question */
  id: string;
  sealed: string;
}

export type InboxMessage = ({ type: 'notice' } & InboxNotice) | ({ type: 'answer' } & InboxAnswer);

/**
 * Notifies a producer that its entry ended. The notice is only a hint: it is published after the end is stored, and reaches nobody when the
 * producer is not subscribed at that moment.
 */
export async function notify(redis: Redis, namespace: string, producer: string, notice: InboxNotice): Promise<void> {
  if (producer === '') return;
  const { tenant, session, entryId, event, result } = notice;
  const inline = Buffer.byteLength(result) <= INLINE_RESULT_BYTES ? result : '';
  await redis.publish(inboxChannel(namespace, producer), `e ${tenant}:${session} ${entryId} ${event} ${inline}`);
}

export async function sendAnswer(
  redis: Redis,
  namespace: string,
  producer: string,
  { id, sealed }: InboxAnswer,
): Promise<void> {
  await redis.publish(inboxChannel(namespace, producer), `a ${id} ${sealed}`);
}

/** Parses a message of an inbox, in the formats of notify(), which is also that of finish.lua, and sendAnswer(). Undefined when it has neither. */
export function parseInboxMessage(message: string): InboxMessage | undefined {
  const notice = NOTICE.exec(message);
  if (notice !== null) {
    const [head, tenant = '', session = '', entryId = '', event = ''] = notice;
    return { type: 'notice', tenant, session, entryId, event, result: message.slice(head.length) };
  }
  const answer = ANSWER.exec(message);
  if (answer === null) return undefined;
  const [head, id = ''] = answer;
  return { type: 'answer', id, sealed: message.slice(head.length) };
}

// Ids have no space and no colon.
const NOTICE = /^e ([^ :]+):([^ :]+) ([^ ]+) (\d+-\d+) /;
const ANSWER = /^a ([^ ]+) /;
