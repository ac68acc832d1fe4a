import type { ApprovalKeys } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';
import { noteAsking } from './asking-tenants.ts';

const script = defineApprovalsScript('ask');

/**
 * What asks a question: an entry, or something beside the mailboxes. A file operation has an entry id of its own; a
 * tool call has TOOL_ASKER for its session, the name of the tool for the generation, and the id of the call for the
 * entry.
 */
export interface Asker {
  session: string;
  generation: string;
  entryId: string;
}
export const toAsker = ({ session, generation, entryId }: Asker): string => `${session} ${generation} ${entryId}`;

/** Returns undefined when the text names no asker: anything may have written to Redis. */
export function parseAsker(text: string): Asker | undefined {
  const [session, generation, entryId, ...more] = text.split(' ');
  if (!session || !generation || !entryId || more.length > 0) return undefined;
  return { session, generation, entryId };
}

/** The keyed hash of what is asked, with which the id of a question begins: `<hash>.<nonce>`. */
export const hashOfQuestion = (id: string): string => id.split('.', 1)[0] ?? '';

export interface NewQuestion {
  /** Id that the question gets if nobody asks it yet: `<hash>.<nonce>`. */
  id: string;
  asker: Asker;
  /** Keyed hash of everything that the answer will hold for. */
  binding: string;
  timeoutMs: number;
  mostPending: number;
  sealed: string;
  /** Whether the caller has looked for answers that were given before, and can use none. */
  unanswered?: boolean;
}

export type Asked =
  /** The question waits until `expiresAt` (ms, by the clock of Redis). */
  | { type: 'pending'; id: string; expiresAt: number }
  | { type: 'answered' }
  | { type: 'too-many'; pending: number }
  /** The session is asked nothing until then (ms), because its questions were denied several times in a row. */
  | { type: 'quiet'; until: number };

/**
 * Adds a question of an entry that is about to be held (APPROVALS-2). The tenant is listed first, so that upkeep finds
 * the question whatever happens next. Throws QUEUE_UNAVAILABLE.
 */
export async function askApproval(redis: Redis, keys: ApprovalKeys, question: NewQuestion): Promise<Asked> {
  const { id, asker, binding, timeoutMs, mostPending, sealed, unanswered = false } = question;
  await noteAsking(redis, keys);
  const args = [keys.prefix, id, toAsker(asker), binding, timeoutMs, mostPending, sealed, unanswered ? '1' : ''];
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
