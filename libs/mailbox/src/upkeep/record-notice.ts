import type { EventType, SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('upkeep/record-notice');

/** Adds an event about the owner to a session's stream, once per type and fence. Returns true if this call added it. */
export async function recordNotice(
  redis: Redis,
  keys: SessionKeys,
  fence: number,
  type: EventType,
  data: Record<string, unknown>,
): Promise<boolean> {
  return (await runOnSession(redis, script, keys, [fence, type, JSON.stringify(data)])) === 1;
}
