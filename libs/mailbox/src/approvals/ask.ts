import type { ApprovalKeys } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';
import { noteAsking } from './asking-tenants.ts';

const script = defineApprovalsScript('ask');

/**
 * Asker of a question: an entry, a file operation with its own entry id, or a tool call. A tool call has TOOL_ASKER as
 * its session, the name of the tool as its generation, and its call id as its entry.
 */
export interface Asker {
  session: string;
  generation: string;
  entryId: string;
}
export const toAsker = ({ session, generation, entryId }: Asker): string => `${session} ${generation} ${entryId}`;

/** Parses an asker. Returns undefined for other text, which anything may have written to Redis. */
export function parseAsker(text: string): Asker | undefined {
  const [session, generation, entryId, ...more] = text.split(' ');
  if (!session || !generation || !entryId || more.length > 0) return undefined;
  return { session, generation, entryId };
}

/** Returns the keyed hash of the question's content from its id, `<hash>.<nonce>`. */
export const hashOfQuestion = (id: string): string => id.split('.', 1)[0] ?? '';

export interface NewQuestion {
  /** Id for a new question: `<hash>.<nonce>`. */
  id: string;
  asker: Asker;
  /** Keyed hash of everything that the answer will apply to. */
  binding: string;
  timeoutMs: number;
  mostPending: number;
  sealed: string;
  /** True if the caller has found no earlier answer that it can use. */
  unanswered?: boolean;
}

export type Asked =
  /** The question waits until `expiresAt` (ms, by the clock of Redis). */
  | { type: 'pending'; id: string; expiresAt: number }
  | { type: 'answered' }
  | { type: 'too-many'; pending: number }
  /** The session may not ask before `until` (ms), because of several denials in a row. */
  | { type: 'quiet'; until: number };

/** Adds an asker to a question (APPROVALS-2), and its tenant to the list for upkeep. Throws QUEUE_UNAVAILABLE. */
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
