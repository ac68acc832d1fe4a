import type { Engine } from './engine.ts';

/** The engine's report about the driver that stores the files of containers. */
export interface StorageDriver {
  Driver?: string;
  DriverStatus?: string[][];
}

/** Tells whether the engine can limit the size of a container's files. False when it does not reply. */
export async function readDiskQuota(engine: Engine): Promise<boolean> {
  const storage = await engine.call((docker) => docker.info() as Promise<StorageDriver>).catch(() => undefined);
  return storage !== undefined && hasDiskQuota(storage);
}

/** Tells whether the driver has quotas. Without `pquota` on XFS, the engine refuses to create the container. */
export function hasDiskQuota({ Driver, DriverStatus = [] }: StorageDriver): boolean {
  if (Driver === 'btrfs' || Driver === 'zfs') return true;
  return (
    Driver === 'overlay2' && DriverStatus.some(([name, value]) => name === 'Backing Filesystem' && value === 'xfs')
  );
}
