import { inboxKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Results up to this size ride in the hint itself; larger ones are read from the session. */
const INLINE_RESULT_CHARS = 4_096;
const INBOX_LENGTH = 10_000;
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

/** Tells a producer that its entry ended. Only a hint: it follows a finish that held, and may be lost. */
export async function notify(redis: Redis, namespace: string, producer: string, notice: InboxNotice): Promise<void> {
  if (producer === '') return;
  const key = inboxKey(namespace, producer);
  const result = notice.result.length <= INLINE_RESULT_CHARS ? notice.result : '';
  await redis
    .multi()
    .xadd(
      key,
      'MAXLEN',
      '~',
      INBOX_LENGTH,
      '*',
      't',
      notice.tenant,
      's',
      notice.session,
      'e',
      notice.entryId,
      'v',
      notice.event,
      'r',
      result,
    )
    .pexpire(key, INBOX_TTL_MS)
    .exec();
}
