import { type ApprovalKeys, fleetKeys } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';

const script = defineApprovalsScript('ask');

/** An entry that asks, as the keys of approvals name it. */
export interface Asker {
  session: string;
  generation: string;
  entryId: string;
}
export const toAsker = ({ session, generation, entryId }: Asker): string => `${session} ${generation} ${entryId}`;

/** Undefined when it names no entry: anything may have written to Redis. */
export function parseAsker(text: string): Asker | undefined {
  const [session, generation, entryId, ...more] = text.split(' ');
  if (!session || !generation || !entryId || more.length > 0) return undefined;
  return { session, generation, entryId };
}

export interface NewQuestion {
  /** The id that it gets if nobody asks it yet: `<hash>.<nonce>`. */
  id: string;
  asker: Asker;
  /** Keyed hash of everything that the answer will hold for. */
  binding: string;
  timeoutMs: number;
  mostPending: number;
  sealed: string;
  /** It was looked for, and no answer that was given before can be used. */
  unanswered?: boolean;
}

export type Asked =
  /** `expiresAt`: ms, by the clock of Redis. */
  | { type: 'pending'; id: string; expiresAt: number }
  | { type: 'answered' }
  | { type: 'too-many'; pending: number }
  /** Its session's questions are not shown until then (ms): they were denied several times in a row. */
  | { type: 'quiet'; until: number };

/**
 * Adds a question of an entry that is about to be held (APPROVALS-2). The tenant is noted first, so that upkeep finds the question whatever
 * happens next. Throws QUEUE_UNAVAILABLE.
 */
export async function askApproval(redis: Redis, keys: ApprovalKeys, question: NewQuestion): Promise<Asked> {
  const { id, asker, binding, timeoutMs, mostPending, sealed, unanswered = false } = question;
  await redis.zadd(fleetKeys(keys.namespace).asking, Date.now(), keys.tenant).catch(throwQueueError);
  const hash = id.split('.', 1)[0] ?? '';
  const args = [keys.prefix, hash, id, toAsker(asker), binding, timeoutMs, mostPending, sealed, unanswered ? '1' : ''];
  const reply = asArray(await runScript(redis, script, [keys.questions], args), script.name);
  switch (reply[0]) {
    case 1:
      return { type: 'pending', id: asString(reply[1]), expiresAt: asNumber(reply[2]) };
    case -1:
      return { type: 'too-many', pending: asNumber(reply[1]) };
    case -2:
      return { type: 'quiet', until: asNumber(reply[1]) };
    default:
      return { type: 'answered' };
  }
}
