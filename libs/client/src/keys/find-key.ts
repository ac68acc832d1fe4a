import { timingSafeEqual } from 'node:crypto';
import { type ApiKeyInfo, accessKeys, apiKeyIdOf, isShellfleetError } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import { hashOfKey, hasKeyExpired, openKey, toKeyInfo } from './key-info.ts';
import type { KeysContext } from './keys-context.ts';

export async function findKey(context: KeysContext, key: string): Promise<ApiKeyInfo | undefined> {
  const id = apiKeyIdOf(key);
  if (id === undefined) return undefined;
  const { redis, namespace, sealer } = context;
  const sealed = await redis.hget(accessKeys(namespace).apiKeys, id).catch(throwQueueError);
  if (sealed === null) return undefined;
  const stored = openKey(sealer, namespace, id, sealed);
  const isSame = timingSafeEqual(hashOfKey(key), Buffer.from(stored.hash, 'hex'));
  return isSame && !hasKeyExpired(stored) ? toKeyInfo(id, stored) : undefined;
}

/** Returns which of the ids are keys that this process can open and that have not expired. */
export async function findWorkingKeys(context: KeysContext, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const { redis, namespace } = context;
  const values = await redis.hmget(accessKeys(namespace).apiKeys, ...ids).catch(throwQueueError);
  return new Set(ids.filter((id, at) => isWorking(context, id, values[at])));
}

function isWorking({ sealer, namespace }: KeysContext, id: string, sealed: string | null | undefined): boolean {
  try {
    return typeof sealed === 'string' && !hasKeyExpired(openKey(sealer, namespace, id, sealed));
  } catch (error) {
    if (isShellfleetError(error) && error.code === 'SEAL_KEY_UNKNOWN') return false;
    throw error;
  }
}
