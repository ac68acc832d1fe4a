import { type AuditHead, auditHeadSchema, fleetKeys, hostKeys, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Place of a host's audit. Hosts that share a state directory, so a machine, have the same `stateDirectoryId`. */
export interface AuditPlace {
  namespace: string;
  host: string;
  stateDirectoryId: string;
}

/** Stores the place of a host's audit, and the heads of its chains by tenant. */
export async function anchorAudit(
  redis: Redis,
  { namespace, host, stateDirectoryId }: AuditPlace,
  heads: ReadonlyMap<string, AuditHead>,
): Promise<void> {
  const fields = [...heads].flatMap(([tenant, head]) => [tenant, JSON.stringify(head)]);
  await redis.hset(fleetKeys(namespace).audits, host, stateDirectoryId);
  if (fields.length > 0) await redis.hset(hostKeys(namespace, host).audit, ...fields);
}

/** Reads the last stored heads, by tenant. */
export async function readAuditHeads(redis: Redis, namespace: string, host: string): Promise<Map<string, AuditHead>> {
  const stored = await redis.hgetall(hostKeys(namespace, host).audit);
  const heads = Object.entries(stored).flatMap(([tenant, text]) => {
    const { data } = auditHeadSchema.safeParse(tryJson(text));
    return data === undefined ? [] : [[tenant, data] as const];
  });
  return new Map(heads);
}

/** Reads every host that ever kept an audit, with the id of its state directory. */
export async function readAuditPlaces(redis: Redis, namespace: string): Promise<Map<string, string>> {
  return new Map(Object.entries(await redis.hgetall(fleetKeys(namespace).audits)));
}
