import { diskUseKey, hostKeys, tenantUseSchema, tryJson } from '@shellfleet/protocol';
import type { UpkeepDeps } from './upkeep-deps.ts';

/** Time for which a sum is valid. Without it, as without upkeep, nothing is refused. */
const VALID_MS = 10_000;

/** Sums what all hosts have reported for each tenant with a quota of disk, for `submit`. */
export async function sumDiskUse({
  redis,
  fleet,
  diskQuotas,
}: Pick<UpkeepDeps, 'redis' | 'fleet' | 'diskQuotas'>): Promise<void> {
  const { namespace } = fleet;
  const tenants = diskQuotas();
  if (tenants.length === 0) return;
  const hosts = await redis.zrange(fleet.hosts, '0', '-1');
  const uses = await Promise.all(hosts.map((host) => redis.hmget(hostKeys(namespace, host).uses, ...tenants)));
  const bytesOf = (text: string | null | undefined) => tenantUseSchema.safeParse(tryJson(text)).data?.diskBytes ?? 0;
  await Promise.all(
    tenants.map((tenant, index) => {
      const sum = uses.reduce((total, ofHost) => total + bytesOf(ofHost[index]), 0);
      return redis.set(diskUseKey(namespace, tenant), String(sum), 'PX', VALID_MS);
    }),
  );
}
