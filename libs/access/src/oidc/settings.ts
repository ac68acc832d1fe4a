import type { Scope } from '@shellfleet/protocol';
import type { OidcValues } from '@shellfleet/protocol/api-settings';

/** Which tokens of an issuer are accepted, and what their claims mean. */
export interface OidcSettings {
  readonly issuer: string;
  readonly audience: string;
  readonly tenant: { readonly name: string } | { readonly claim: string };
  readonly scopeClaim: string;
  /** Scopes of each value of the claim. */
  readonly scopes: ReadonlyMap<string, readonly Scope[]>;
  readonly nameClaim: string;
  readonly algorithms: readonly string[];
}

/** Returns the settings. Returns undefined if no issuer is set, and a sentence about settings that do not fit. */
export function toOidcSettings(values: OidcValues): OidcSettings | string | undefined {
  const { SHELLFLEET_OIDC_ISSUER: issuer, SHELLFLEET_OIDC_AUDIENCE: audience } = values;
  const { SHELLFLEET_OIDC_TENANT: name, SHELLFLEET_OIDC_TENANT_CLAIM: claim } = values;
  if (issuer === undefined) {
    const isUnused = [audience, name, claim].some((value) => value !== undefined);
    return isUnused ? 'SHELLFLEET_OIDC_… is set without SHELLFLEET_OIDC_ISSUER' : undefined;
  }
  if (audience === undefined)
    return 'SHELLFLEET_OIDC_ISSUER needs SHELLFLEET_OIDC_AUDIENCE: without it, tokens for other services of the issuer would be accepted';
  if ((name === undefined) === (claim === undefined))
    return 'SHELLFLEET_OIDC_ISSUER needs one of SHELLFLEET_OIDC_TENANT and SHELLFLEET_OIDC_TENANT_CLAIM';
  return {
    ...{ issuer, audience },
    tenant: name === undefined ? { claim: claim as string } : { name },
    scopeClaim: values.SHELLFLEET_OIDC_SCOPE_CLAIM,
    scopes: values.SHELLFLEET_OIDC_SCOPES,
    nameClaim: values.SHELLFLEET_OIDC_NAME_CLAIM,
    algorithms: values.SHELLFLEET_OIDC_ALGORITHMS,
  };
}
