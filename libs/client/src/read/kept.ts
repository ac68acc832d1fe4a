import { type KeptSandbox, keptSandboxSchema, parseKeptField, tenantKeys, tryJson } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';

export type ListedKept = KeptSandbox & { generation: string };

/** Returns the containers that hosts keep for a post-mortem: session of the tenant → its containers. */
export async function readKept({
  redis,
  namespace,
  tenant,
}: FleetContext & { tenant: string }): Promise<Map<string, ListedKept[]>> {
  const listed = await redis.hgetall(tenantKeys(namespace, tenant).kept).catch((error: unknown) => {
    throw toQueueError(error);
  });
  const kept = new Map<string, ListedKept[]>();
  for (const [field, text] of Object.entries(listed)) {
    const place = parseKeptField(field);
    const { data } = keptSandboxSchema.safeParse(tryJson(text));
    if (place === undefined || data === undefined) continue;
    kept.set(place.session, [...(kept.get(place.session) ?? []), data]);
  }
  return kept;
}
