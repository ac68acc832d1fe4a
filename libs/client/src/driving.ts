// What a worker needs to drive a detached batch. It is no part of the SDK.

export { BatchDrive, type DriveEnd } from './detached/batch-drive.ts';
export { driverNameOf } from './detached/driver-name.ts';
export { HeldLease } from './detached/held-lease.ts';
export { packPath } from './detached/pack-path.ts';
export { unpackTo } from './detached/unpack-to.ts';
