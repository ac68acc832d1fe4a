import { type ApiKeyInfo, accessKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import { openKey, toKeyInfo } from './key-info.ts';
import type { KeysContext } from './keys-context.ts';

export async function listKeys({ redis, namespace, sealer }: KeysContext): Promise<ApiKeyInfo[]> {
  const { apiKeys, apiKeyUses } = accessKeys(namespace);
  const [keys, uses] = await Promise.all([redis.hgetall(apiKeys), redis.hgetall(apiKeyUses)]).catch(throwQueueError);
  const opened = Object.entries(keys).map(([id, sealed]) => ({ id, stored: openKey(sealer, namespace, id, sealed) }));
  opened.sort((a, b) => a.stored.createdAt - b.stored.createdAt || (a.id < b.id ? -1 : 1));
  return opened.map(({ id, stored }) => toKeyInfo(id, stored, uses[id]));
}
