import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** A fleet, over the main connection. The parts of a view extend it by what they need. */
export interface FleetContext {
  readonly redis: Redis;
  /** Its keyspace. */
  readonly namespace: string;
  readonly fleet: FleetKeys;
}
