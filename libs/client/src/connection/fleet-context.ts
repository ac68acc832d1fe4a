import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** A fleet over the main connection, which the contexts of other modules extend. */
export interface FleetContext {
  readonly redis: Redis;
  readonly namespace: string;
  readonly fleet: FleetKeys;
}
