import { ShellfleetError } from '@shellfleet/protocol';
import { createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { z } from 'zod';
import type { Principal } from '../principal.ts';
import { claimsToPrincipal } from './claims.ts';
import type { OidcSettings } from './settings.ts';

// OIDC-1. The algorithms are those of the settings, never that of the token: `none` and HS256 are not among them.
// OIDC-2. Keys come from the issuer that the operator named, and never from a URL or key inside a token.
// OIDC-3. Keys are kept for ten minutes. An unknown key id fetches them again, at most every half minute.

/** Seconds by which the clocks of issuer and server may differ. */
const SKEW_S = 30;
const FETCH_MS = 5_000;
const MOST_CHARS = 16_384;
/** Errors of tokens. All others are those of the issuer. */
const REFUSALS = [
  ...[errors.JWTExpired, errors.JWTClaimValidationFailed, errors.JWTInvalid, errors.JWSInvalid],
  ...[errors.JWSSignatureVerificationFailed, errors.JOSEAlgNotAllowed, errors.JOSENotSupported],
  ...[errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys],
];

/** The tokens of one OpenID Connect issuer. */
export class OidcTokens {
  readonly #settings: OidcSettings;
  readonly #refetchAfterMs: number;
  #keys: Promise<JWTVerifyGetKey> | undefined;

  constructor(settings: OidcSettings, refetchAfterMs: number) {
    this.#settings = settings;
    this.#refetchAfterMs = refetchAfterMs;
  }

  /** Returns who has the token. Returns undefined for an invalid token, and rejects with ISSUER_UNAVAILABLE. */
  async find(token: string): Promise<Principal | undefined> {
    if (token.length > MOST_CHARS || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return undefined;
    const payload = await this.#verify(token);
    if (payload?.exp === undefined) return undefined;
    return claimsToPrincipal(this.#settings, payload, (payload.exp + SKEW_S) * 1_000);
  }

  async #verify(token: string): Promise<JWTPayload | undefined> {
    const { issuer, audience, algorithms } = this.#settings;
    try {
      const { payload } = await jwtVerify(token, await this.#findKeys(), {
        ...{ issuer, audience, algorithms: [...algorithms], clockTolerance: SKEW_S },
        requiredClaims: ['exp', 'sub'],
      });
      return payload;
    } catch (error) {
      if (REFUSALS.some((Refusal) => error instanceof Refusal)) return undefined;
      throw new ShellfleetError(
        'ISSUER_UNAVAILABLE',
        `The keys of the issuer ${issuer} cannot be read, so its tokens cannot be checked: ${(error as Error).message}.`,
        { issuer },
        { cause: error },
      );
    }
  }

  /** Finds the keys of the issuer by its discovery document. A failure is not kept. */
  #findKeys(): Promise<JWTVerifyGetKey> {
    this.#keys ??= discover(this.#settings.issuer)
      .then((url) => createRemoteJWKSet(url, { timeoutDuration: FETCH_MS, cooldownDuration: this.#refetchAfterMs }))
      .catch((error: unknown) => {
        this.#keys = undefined;
        throw error;
      });
    return this.#keys;
  }
}

/** Returns the URL of the keys of an issuer. */
async function discover(issuer: string): Promise<URL> {
  const response = await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, {
    redirect: 'error',
    signal: AbortSignal.timeout(FETCH_MS),
  });
  if (!response.ok) throw new Error(`its discovery document has the status ${response.status}`);
  const documentSchema = z.object({ issuer: z.literal(issuer), jwks_uri: z.url() });
  const document = documentSchema.safeParse(await response.json());
  if (!document.success) throw new Error('its discovery document has another issuer, or no jwks_uri');
  const url = new URL(document.data.jwks_uri);
  if (url.protocol !== 'https:' && new URL(issuer).protocol === 'https:') throw new Error('its jwks_uri has no TLS');
  return url;
}
