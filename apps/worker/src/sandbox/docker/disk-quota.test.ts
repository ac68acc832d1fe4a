import { describe, expect, test } from 'vitest';
import { hasDiskQuota, type StorageDriver } from './disk-quota.ts';

describe('disk quotas', () => {
  test.each<[StorageDriver, boolean]>([
    [{ Driver: 'overlay2', DriverStatus: [['Backing Filesystem', 'xfs']] }, true],
    [{ Driver: 'overlay2', DriverStatus: [['Backing Filesystem', 'extfs']] }, false],
    [{ Driver: 'overlay2' }, false],
    [{ Driver: 'btrfs', DriverStatus: [['Btrfs', '']] }, true],
    [{ Driver: 'zfs' }, true],
    [{ Driver: 'vfs' }, false],
    [{}, false],
  ])('the storage driver %o has a quota: %s', (storage, hasQuota) => {
    expect(hasDiskQuota(storage)).toBe(hasQuota);
  });
});
