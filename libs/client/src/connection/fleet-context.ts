import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** A namespace, over the main connection. The parts of a view extend it by what they need. */
export interface FleetContext {
  readonly redis: Redis;
  readonly namespace: string;
  readonly fleet: FleetKeys;
}
