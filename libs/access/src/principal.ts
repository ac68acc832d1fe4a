import type { ApiKeyInfo, Caller, Scope } from '@shellfleet/protocol';

/** A caller whose token was accepted, and what it may do. */
export interface Principal {
  readonly caller: Caller;
  /** Tenant whose sessions the caller reaches. */
  readonly tenant: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Time in ms at which the token expires. */
  readonly expiresAt?: number;
  /** Id of the API key that was the token. */
  readonly keyId?: string;
}

export function toPrincipal({ id, name, tenant, scopes, expiresAt }: ApiKeyInfo): Principal {
  return {
    ...{ caller: { id: `key-${id}`, name }, tenant, scopes: new Set(scopes), keyId: id },
    ...(expiresAt === undefined ? {} : { expiresAt: Date.parse(expiresAt) }),
  };
}
