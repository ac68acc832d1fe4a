import type { SessionKeys } from '@shellfleet/protocol';

/** A session that a task has used, with what the fleet stores of it until it may forget it. */
export interface UsedSession {
  keys: SessionKeys;
  generation: string;
  /** Entries whose Results this process has. */
  entryIds: string[];
  idempotencyKeys: string[];
}
