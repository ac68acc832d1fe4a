import type { ApiKeys } from '@shellfleet/client';
import type { AccessLog } from './access-log.ts';
import type { Principal } from './principal.ts';
import { RecentKeys } from './recent-keys.ts';
import { Validities, type Validity } from './validities.ts';

/** Tells who presents a token, and when the token stops to be valid. */
export interface Access {
  /**
   * Returns who presents the token. Returns undefined for a token that is unknown, was revoked more than half a second
   * ago, or has expired. Rejects with QUEUE_UNAVAILABLE when Redis does not reply.
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

/** Opens access to the fleet of a client that has the fleet's seal key. */
export function openAccess({ keys }: { keys: UsedKeys }, { log }: { log: AccessLog }): Access {
  const recent = new RecentKeys(keys, log);
  const validities = new Validities(keys, log);
  return {
    authenticate: (token) => recent.find(token),
    validity: (principal) => validities.open(principal),
    close: () => validities.close(),
  };
}
