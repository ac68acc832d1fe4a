import { type ApiKeyInfo, accessKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import { type CreatedApiKey, type CreateKeyOptions, createKey } from './create-key.ts';
import { findKey, findWorkingKeys } from './find-key.ts';
import type { KeysContext } from './keys-context.ts';
import { listKeys } from './list-keys.ts';
import { revokeKey } from './revoke-key.ts';

/** The API keys of all tenants of a fleet. They are for operators. All calls need the seal key of the fleet. */
export class ApiKeys {
  readonly #context: KeysContext;

  constructor(context: KeysContext) {
    this.#context = context;
  }

  /**
   * Makes a key, whose text is only returned here: Redis stores its hash. Rejects with COMMAND_INVALID.
   *
   * ```ts
   * const { key } = await fleet.keys.create({ name: 'ci', scopes: ['submit', 'read'] });
   * ```
   */
  create(options: CreateKeyOptions): Promise<CreatedApiKey> {
    return createKey(this.#context, options);
  }

  /**
   * Lists the keys, also those that have expired, in the order in which they were made. Rejects with SEAL_KEY_UNKNOWN
   * if this process cannot open one.
   */
  list(): Promise<ApiKeyInfo[]> {
    return listKeys(this.#context);
  }

  /**
   * Revokes a key, and returns its id. Servers refuse the key and end its streams within a second. Rejects with
   * COMMAND_INVALID if there is no such key, or if several have the name.
   */
  revoke(idOrName: string): Promise<string> {
    return revokeKey(this.#context, idOrName);
  }

  /** Returns the key with this text. Returns undefined for any other text, and for a key that has expired. */
  find(key: string): Promise<ApiKeyInfo | undefined> {
    return findKey(this.#context, key);
  }

  /** Returns which of these ids are those of keys that were not revoked and have not expired, by one call to Redis. */
  findWorking(ids: readonly string[]): Promise<Set<string>> {
    return findWorkingKeys(this.#context, ids);
  }

  /** Records that a key was used now, for `lastUsedAt`. */
  async noteUse(id: string): Promise<void> {
    const { redis, namespace } = this.#context;
    await redis.hset(accessKeys(namespace).apiKeyUses, id, String(Date.now())).catch(throwQueueError);
  }
}
