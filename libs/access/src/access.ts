import type { ApiKeys } from '@shellfleet/client';
import type { AccessLog } from './access-log.ts';
import type { OidcSettings } from './oidc/settings.ts';
import { OidcTokens } from './oidc/tokens.ts';
import type { Principal } from './principal.ts';
import { RecentTokens } from './recent-tokens.ts';
import { Validities, type Validity } from './validities.ts';

/** Tells who presents a token, and when the token is no longer valid. */
export interface Access {
  /**
   * Returns who presents the token. Returns undefined for a token that is unknown, was revoked more than half a second
   * ago, or has expired. Rejects with QUEUE_UNAVAILABLE when Redis does not reply, and with ISSUER_UNAVAILABLE when the
   * issuer of the token does not.
   */
  authenticate(token: string): Promise<Principal | undefined>;
  /**
   * Begins to observe the token of an open stream. The signal aborts within a second after the token was revoked or
   * has expired. Dispose of the result when the stream ends.
   */
  validity(principal: Principal): Validity;
  close(): void;
}

/** The API keys of a fleet, as they are used here. */
type UsedKeys = Pick<ApiKeys, 'find' | 'findWorking' | 'noteUse'>;

export interface AccessOptions {
  /** The issuer whose tokens are accepted beside API keys. Default: none. */
  oidc?: OidcSettings | undefined;
  log: AccessLog;
}

/** Time after which an unknown key id may fetch the keys of the issuer again. */
const REFETCH_AFTER_MS = 30_000;

/** Opens access to the fleet of a client that has the fleet's seal key. */
export function openAccess({ keys }: { keys: UsedKeys }, { oidc, log }: AccessOptions): Access {
  const recent = new RecentTokens(keys, oidc && new OidcTokens(oidc, REFETCH_AFTER_MS), log);
  const validities = new Validities(keys, log);
  return {
    authenticate: (token) => recent.find(token),
    validity: (principal) => validities.open(principal),
    close: () => validities.close(),
  };
}
