import { inboxKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Results up to this size are part of the notice itself; larger ones are read from the session. */
export const INLINE_RESULT_CHARS = 4_096;
export const INBOX_LENGTH = 10_000;
const INBOX_TTL_MS = 600_000;

/** A hint that an entry ended. `result` is the wire result's JSON, or empty when it has to be read from the session. */
export interface InboxNotice {
  tenant: string;
  session: string;
  entryId: string;
  /** id of the terminal event in the session's stream */
  event: string;
  result: string;
}

/**
 * Notifies a producer that its entry ended. The notice is only a hint: it is sent after the end is stored, and may be lost. An expired
 * inbox is not created again, because no process would read it.
 */
export async function notify(redis: Redis, namespace: string, producer: string, notice: InboxNotice): Promise<void> {
  if (producer === '') return;
  const { tenant, session, entryId, event } = notice;
  const result = notice.result.length <= INLINE_RESULT_CHARS ? notice.result : '';
  const fields = ['t', tenant, 's', session, 'e', entryId, 'v', event, 'r', result];
  await redis.xadd(inboxKey(namespace, producer), 'NOMKSTREAM', 'MAXLEN', '~', INBOX_LENGTH, '*', ...fields);
}

/**
 * Sends the answer to a producer's question (`a`: its id). An empty one has to be read where it is stored: a large answer in the inbox would
 * delay every notice behind it.
 */
export async function sendAnswer(
  redis: Redis,
  namespace: string,
  producer: string,
  { id, sealed }: { id: string; sealed: string },
): Promise<void> {
  const fields = ['a', id, 'd', sealed];
  await redis.xadd(inboxKey(namespace, producer), 'NOMKSTREAM', 'MAXLEN', '~', INBOX_LENGTH, '*', ...fields);
}

/** The contents of an inbox entry, in the fields that notify(), sendAnswer() and finish.lua write. */
export type InboxEntry = { type: 'notice'; notice: InboxNotice } | { type: 'answer'; id: string; sealed: string };

/** Parses the fields of an inbox's stream entry. */
export function parseInboxEntry(fields: string[]): InboxEntry {
  if (fields[0] === 'a') {
    const [, id = '', , sealed = ''] = fields;
    return { type: 'answer', id, sealed };
  }
  const [, tenant = '', , session = '', , entryId = '', , event = '', , result = ''] = fields;
  return { type: 'notice', notice: { tenant, session, entryId, event, result } };
}

/** Creates the inbox, or renews its time to live. Called before the first submit, and then well within the time to live. */
export async function keepInbox(redis: Redis, namespace: string, producer: string): Promise<void> {
  const key = inboxKey(namespace, producer);
  // The entry is empty. It is needed because a stream exists only once an entry was added.
  await redis.multi().xadd(key, '*', 't', '', 's', '', 'e', '', 'v', '', 'r', '').pexpire(key, INBOX_TTL_MS).exec();
}
