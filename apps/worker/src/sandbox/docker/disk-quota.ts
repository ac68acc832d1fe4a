import type { Engine } from './engine.ts';

/** What the engine reports of the driver that stores the files of containers. */
export interface StorageDriver {
  Driver?: string;
  DriverStatus?: string[][];
}

/** Whether the engine may limit the size of a container's files. One that does not answer has no quota: the check of the policy reports it. */
export async function readDiskQuota(engine: Engine): Promise<boolean> {
  const storage = await engine.call((docker) => docker.info() as Promise<StorageDriver>).catch(() => undefined);
  return storage !== undefined && hasDiskQuota(storage);
}

/**
 * overlay2 has quotas on XFS that is mounted with `pquota`. The engine does not report the mount option: without it, it refuses to create
 * the container, and says why.
 */
export function hasDiskQuota({ Driver, DriverStatus = [] }: StorageDriver): boolean {
  if (Driver === 'btrfs' || Driver === 'zfs') return true;
  return (
    Driver === 'overlay2' && DriverStatus.some(([name, value]) => name === 'Backing Filesystem' && value === 'xfs')
  );
}
