import { createHash } from 'node:crypto';
import type { ApiKeys } from '@shellfleet/client';
import { apiKeyIdOf, isShellfleetError } from '@shellfleet/protocol';
import type { AccessLog } from './access-log.ts';
import { type Principal, toPrincipal } from './principal.ts';

// KEYS-1. A key is looked up at most every KEPT_MS, so a revoked one is refused after that time.
// KEYS-2. What is kept is bounded, also while somebody tries many keys.
// KEYS-3. A failure of Redis is not kept.

const KEPT_MS = 500;
const MOST_KEPT = 10_000;
const NOTE_USE_EVERY_MS = 60_000;

interface Lookup {
  readonly at: number;
  readonly principal: Promise<Principal | undefined>;
}

/** The keys that were presented in the last half second. */
export class RecentKeys {
  readonly #keys: Pick<ApiKeys, 'find' | 'noteUse'>;
  readonly #log: AccessLog;
  /** SHA-256 of a token → its last lookup, the oldest first. */
  readonly #lookups = new Map<string, Lookup>();
  /** Id of a key → when its use was recorded last. Only ids of keys that exist are in it. */
  readonly #noted = new Map<string, number>();

  constructor(keys: Pick<ApiKeys, 'find' | 'noteUse'>, log: AccessLog) {
    this.#keys = keys;
    this.#log = log;
  }

  async find(token: string): Promise<Principal | undefined> {
    if (apiKeyIdOf(token) === undefined) return undefined;
    const now = performance.now();
    this.#forget(now);
    const hash = createHash('sha256').update(token).digest('base64');
    const { principal } = this.#lookups.get(hash) ?? this.#lookUp(token, hash, now);
    const found = await principal;
    if (found?.expiresAt !== undefined && found.expiresAt <= Date.now()) return undefined;
    if (found?.keyId !== undefined) this.#noteUse(found.keyId, now);
    return found;
  }

  #lookUp(token: string, hash: string, at: number): Lookup {
    const lookup = { at, principal: this.#read(token) };
    this.#lookups.set(hash, lookup);
    lookup.principal.catch(() => this.#lookups.delete(hash));
    return lookup;
  }

  async #read(token: string): Promise<Principal | undefined> {
    try {
      const info = await this.#keys.find(token);
      return info && toPrincipal(info);
    } catch (error) {
      // A stored key that does not open admits nobody, and the operator has to know why.
      if (!isShellfleetError(error) || error.code !== 'SEAL_KEY_UNKNOWN') throw error;
      this.#log.warn({ err: error }, 'key.unreadable');
      return undefined;
    }
  }

  #forget(now: number): void {
    for (const [hash, { at }] of this.#lookups) {
      if (now - at < KEPT_MS && this.#lookups.size < MOST_KEPT) return;
      this.#lookups.delete(hash);
    }
  }

  #noteUse(id: string, now: number): void {
    if (now - (this.#noted.get(id) ?? Number.NEGATIVE_INFINITY) < NOTE_USE_EVERY_MS) return;
    this.#noted.set(id, now);
    // Without Redis the time of the last use is a minute older.
    this.#keys.noteUse(id).catch(() => {});
  }
}
