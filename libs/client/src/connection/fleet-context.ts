import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** A fleet over the main connection. The contexts of other modules extend this type. */
export interface FleetContext {
  readonly redis: Redis;
  readonly namespace: string;
  readonly fleet: FleetKeys;
}
