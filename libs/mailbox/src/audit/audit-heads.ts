import { type AuditHead, auditHeadSchema, hostKeys, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Stores the heads of a host's audit chains, by tenant. */
export async function anchorAuditHeads(
  redis: Redis,
  namespace: string,
  host: string,
  heads: ReadonlyMap<string, AuditHead>,
): Promise<void> {
  if (heads.size === 0) return;
  const fields = [...heads].flatMap(([tenant, head]) => [tenant, JSON.stringify(head)]);
  await redis.hset(hostKeys(namespace, host).audit, ...fields);
}

/** The heads that were stored last, by tenant. */
export async function readAuditHeads(redis: Redis, namespace: string, host: string): Promise<Map<string, AuditHead>> {
  const stored = await redis.hgetall(hostKeys(namespace, host).audit);
  const heads = Object.entries(stored).flatMap(([tenant, text]) => {
    const { data } = auditHeadSchema.safeParse(tryJson(text));
    return data === undefined ? [] : [[tenant, data] as const];
  });
  return new Map(heads);
}
