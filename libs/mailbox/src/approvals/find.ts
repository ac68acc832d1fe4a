import { type ApprovalEnd, type ApprovalKeys, approvalEndSchema, tryJson } from '@shellfleet/protocol';
import { asArray, asNumber, asString, retentionOf, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';
import { type Asker, toAsker } from './ask.ts';

const script = defineApprovalsScript('find');

export interface StoredAnswer {
  /** Time of this call: ms, by the clock of Redis. */
  at: number;
  /** Number of unapplied answers. The caller applies them and calls again. */
  unapplied: number;
  /** Sealed grant for exactly this question. `ofSession`: it holds for every equal question of the session. */
  grant: { id: string; sealed: string; ofSession: boolean } | undefined;
  end: ApprovalEnd | undefined;
  /** Sealed grants for every command of the tenant. */
  prefixes: { id: string; sealed: string }[];
  /** Sealed grants of the session for directories. */
  directories: { id: string; sealed: string }[];
}

/**
 * Looks for an answer to an asker's question, and reads `prefixes` and `directories` if required. Throws
 * QUEUE_UNAVAILABLE.
 */
export async function findAnswer(
  redis: Redis,
  keys: ApprovalKeys,
  asker: Asker,
  { binding, hash, prefixes, directories }: { binding: string; hash: string; prefixes: boolean; directories: boolean },
): Promise<StoredAnswer> {
  const sameOfSession = `${asker.session} ${asker.generation} ${hash}`;
  const retention = retentionOf(redis, keys.namespace);
  const which = [prefixes, directories].map((reads) => (reads ? '1' : '0'));
  const args = [keys.prefix, toAsker(asker), binding, sameOfSession, retention, ...which];
  const reply = asArray(await runScript(redis, script, [keys.questions], args), script.name);
  const [at, unapplied, id, sealed, ofSession, end, tenantWide, ofDirectories] = reply;
  return {
    at: asNumber(at),
    unapplied: asNumber(unapplied),
    grant: id ? { id: asString(id), sealed: asString(sealed), ofSession: ofSession === 1 } : undefined,
    end: approvalEndSchema.safeParse(tryJson(asString(end))).data,
    prefixes: toGrants(tenantWide),
    directories: toGrants(ofDirectories),
  };
}

function toGrants(reply: unknown): { id: string; sealed: string }[] {
  const list = asArray(reply, script.name).map(asString);
  return list.flatMap((id, index) =>
    index % 2 === 0 && list[index + 1] ? [{ id, sealed: list[index + 1] as string }] : [],
  );
}
