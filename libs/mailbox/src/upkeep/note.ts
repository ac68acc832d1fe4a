import type { EventType, SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../script.ts';

const script = defineMailboxScript('upkeep/note');

/** Says something of the session's owner, once per type and fence. True when this call said it. */
export async function note(
  redis: Redis,
  keys: SessionKeys,
  fence: number,
  type: EventType,
  data: Record<string, unknown>,
): Promise<boolean> {
  return (await runOnSession(redis, script, keys, [fence, type, JSON.stringify(data)])) === 1;
}
