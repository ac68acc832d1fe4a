import { createHash } from 'node:crypto';
import type { ApiKeys } from '@shellfleet/client';
import { apiKeyIdOf, isShellfleetError } from '@shellfleet/protocol';
import type { AccessLog } from './access-log.ts';
import type { OidcTokens } from './oidc/tokens.ts';
import { type Principal, toPrincipal } from './principal.ts';

// TOKENS-1. A token is looked up at most every KEPT_MS, so a revoked key is refused after that time.
// TOKENS-2. What is kept is bounded, also while somebody tries many tokens.
// TOKENS-3. A failure of Redis or of the issuer is not kept.

const KEPT_MS = 500;
const MOST_KEPT = 10_000;
const NOTE_USE_EVERY_MS = 60_000;
const WARN_EVERY_MS = 60_000;

interface Lookup {
  readonly at: number;
  readonly principal: Promise<Principal | undefined>;
}

/** The tokens that were presented in the last half second: API keys, and tokens of an issuer if there is one. */
export class RecentTokens {
  readonly #keys: Pick<ApiKeys, 'find' | 'noteUse'>;
  readonly #oidc: OidcTokens | undefined;
  readonly #log: AccessLog;
  /** SHA-256 of a token → its last lookup, the oldest first. */
  readonly #lookups = new Map<string, Lookup>();
  /** Id of a key → when its use was recorded last. Only ids of keys that exist are in it. */
  readonly #noted = new Map<string, number>();
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(keys: Pick<ApiKeys, 'find' | 'noteUse'>, oidc: OidcTokens | undefined, log: AccessLog) {
    this.#keys = keys;
    this.#oidc = oidc;
    this.#log = log;
  }

  async find(token: string): Promise<Principal | undefined> {
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

  #read(token: string): Promise<Principal | undefined> {
    return apiKeyIdOf(token) === undefined ? this.#readOidc(token) : this.#readKey(token);
  }

  async #readOidc(token: string): Promise<Principal | undefined> {
    return this.#oidc?.find(token);
  }

  async #readKey(token: string): Promise<Principal | undefined> {
    try {
      const info = await this.#keys.find(token);
      return info && toPrincipal(info);
    } catch (error) {
      // A stored key that does not open admits nobody, and the operator has to know why.
      if (!isShellfleetError(error) || error.code !== 'SEAL_KEY_UNKNOWN') throw error;
      this.#warn(error);
      return undefined;
    }
  }

  #warn(err: unknown): void {
    const now = performance.now();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    this.#log.warn({ err }, 'key.unreadable');
  }

  #forget(now: number): void {
    for (const [hash, { at }] of this.#lookups) {
      if (now - at < KEPT_MS && this.#lookups.size < MOST_KEPT) return;
      this.#lookups.delete(hash);
    }
  }

  #noteUse(id: string, now: number): void {
    if (now - (this.#noted.get(id) ?? Number.NEGATIVE_INFINITY) < NOTE_USE_EVERY_MS) return;
    // A use that is recorded once more does no harm.
    if (this.#noted.size >= MOST_KEPT) this.#noted.clear();
    this.#noted.set(id, now);
    // Without Redis the time of the last use is a minute older.
    this.#keys.noteUse(id).catch(() => {});
  }
}
