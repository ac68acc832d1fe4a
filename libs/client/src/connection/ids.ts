import { randomBytes } from 'node:crypto';
import { monotonicFactory } from 'ulid';

/** Makes ULIDs that rise in the order of the calls. */
export function createIds(): () => string {
  return monotonicFactory(pooledRandom());
}

/** Random fractions as `ulid` expects them. The bytes come 1,024 at a time: a system call for each would cost as much as a small call to Redis. */
function pooledRandom(): () => number {
  let pool = Buffer.alloc(0);
  let used = 0;
  return () => {
    if (used === pool.length) {
      pool = randomBytes(1_024);
      used = 0;
    }
    return pool.readUInt8(used++) / 256;
  };
}
