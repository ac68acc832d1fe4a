import { type ApprovalEnd, type ApprovalKeys, approvalEndSchema, tryJson } from '@shellfleet/protocol';
import { asArray, asNumber, asString, retentionOf, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';
import { type Asker, toAsker } from './ask.ts';

const script = defineApprovalsScript('find');

export interface FoundAnswer {
  /** By the clock of Redis, ms. */
  at: number;
  /** Answers that nobody has applied yet: apply them and look again. */
  unapplied: number;
  /** The grant for exactly this question, sealed. `ofSession`: it was given for whatever asks the same in the session. */
  grant: { id: string; sealed: string; ofSession: boolean } | undefined;
  /** How the question of this entry ended. */
  end: ApprovalEnd | undefined;
  /** Grants that reach every command of the tenant, sealed. */
  prefixes: { id: string; sealed: string }[];
  /** Grants that the session has for folders, sealed. */
  folders: { id: string; sealed: string }[];
}

/** Looks for an answer to exactly the question that an entry asks. `hash`: of the question. Throws QUEUE_UNAVAILABLE. */
export async function findAnswer(
  redis: Redis,
  keys: ApprovalKeys,
  asker: Asker,
  { binding, hash, prefixes, folders }: { binding: string; hash: string; prefixes: boolean; folders: boolean },
): Promise<FoundAnswer> {
  const sameOfSession = `${asker.session} ${asker.generation} ${hash}`;
  const retention = retentionOf(redis, keys.namespace);
  const which = [prefixes, folders].map((reads) => (reads ? '1' : '0'));
  const args = [keys.prefix, toAsker(asker), binding, sameOfSession, retention, ...which];
  const reply = asArray(await runScript(redis, script, [keys.questions], args), script.name);
  const [at, unapplied, id, sealed, ofSession, end, tenantWide, ofFolders] = reply;
  return {
    at: asNumber(at),
    unapplied: asNumber(unapplied),
    grant: id ? { id: asString(id), sealed: asString(sealed), ofSession: ofSession === 1 } : undefined,
    end: approvalEndSchema.safeParse(tryJson(asString(end))).data,
    prefixes: toGrants(tenantWide),
    folders: toGrants(ofFolders),
  };
}

function toGrants(reply: unknown): { id: string; sealed: string }[] {
  const list = asArray(reply, script.name).map(asString);
  return list.flatMap((id, index) =>
    index % 2 === 0 && list[index + 1] ? [{ id, sealed: list[index + 1] as string }] : [],
  );
}
