import { accessKeys, ShellfleetError } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { KeysContext } from './keys-context.ts';
import { listKeys } from './list-keys.ts';

export async function revokeKey(context: KeysContext, idOrName: string): Promise<string> {
  const { redis, namespace } = context;
  const { apiKeys, apiKeyUses } = accessKeys(namespace);
  // An id needs no opening, so that a key whose seal key is lost can be revoked too.
  const isId = (await redis.hexists(apiKeys, idOrName).catch(throwQueueError)) === 1;
  const id = isId ? idOrName : await findByName(context, idOrName);
  const removed = await redis.hdel(apiKeys, id).catch(throwQueueError);
  if (removed === 0) throw noKey(idOrName);
  await redis.hdel(apiKeyUses, id).catch(throwQueueError);
  return id;
}

async function findByName(context: KeysContext, name: string): Promise<string> {
  const found = (await listKeys(context)).filter((key) => key.name === name);
  const [only, ...others] = found;
  if (only === undefined) throw noKey(name);
  if (others.length === 0) return only.id;
  const ids = found.map(({ id, tenant }) => `${id} (tenant ${tenant})`).join(', ');
  throw invalid(`${found.length} API keys have the name ${name}: ${ids}. Revoke one by its id`, 'names several keys');
}

function noKey(name: string): ShellfleetError {
  const text = `There is no API key ${JSON.stringify(name.slice(0, 64))}. \`shellfleet keys ls\` lists them`;
  return invalid(text, 'names no key');
}

function invalid(text: string, message: string): ShellfleetError {
  return new ShellfleetError('COMMAND_INVALID', `${text}.`, { issues: [{ path: 'key', message }] });
}
