import { type SessionKeys, tenantKeys } from '@shellfleet/protocol';
import { runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlainScript } from '../scripts.ts';

const script = definePlainScript('upkeep/postpone');

/** Sets when upkeep looks at a session next. Returns false if the session's `score`, a text, has changed. */
export async function postpone(
  redis: Redis,
  { namespace, tenant, session }: SessionKeys,
  score: string,
  delayMs: number,
): Promise<boolean> {
  return (
    (await runScript(redis, script, [tenantKeys(namespace, tenant).index], [session, score, Math.ceil(delayMs)])) === 1
  );
}
