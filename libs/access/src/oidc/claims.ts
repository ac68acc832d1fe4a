import { createHash } from 'node:crypto';
import { type Scope, tenantIdSchema } from '@shellfleet/protocol';
import type { Principal } from '../principal.ts';
import type { OidcSettings } from './settings.ts';

type Claims = Readonly<Record<string, unknown>>;

const ID_HEX = 32;
/** Text without control, format and private characters, which a terminal could interpret. */
const NAME = /^[^\p{C}]{1,128}$/u;

/**
 * Returns who has a token with these claims. `expiresAt` is in ms. Returns undefined if a claim is missing, or if none
 * of its values is mapped to a scope.
 */
export function claimsToPrincipal(settings: OidcSettings, claims: Claims, expiresAt: number): Principal | undefined {
  const { sub } = claims;
  const tenant = tenantOf(settings, claims);
  const scopes = scopesOf(settings, claims);
  if (typeof sub !== 'string' || sub === '' || tenant === undefined || scopes.size === 0) return undefined;
  // A subject is unique for its issuer only.
  const digest = createHash('sha256').update(JSON.stringify([settings.issuer, sub]));
  const id = `oidc-${digest.digest('hex').slice(0, ID_HEX)}`;
  const name = [readClaim(claims, settings.nameClaim), sub].find(isName) ?? id;
  return { caller: { id, name }, tenant, scopes, expiresAt };
}

const isName = (value: unknown): value is string => typeof value === 'string' && NAME.test(value);

function tenantOf({ tenant }: OidcSettings, claims: Claims): string | undefined {
  return 'name' in tenant ? tenant.name : tenantIdSchema.safeParse(readClaim(claims, tenant.claim)).data;
}

function scopesOf({ scopeClaim, scopes }: OidcSettings, claims: Claims): ReadonlySet<Scope> {
  const value = readClaim(claims, scopeClaim);
  const values: unknown[] = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  return new Set(values.flatMap((one) => (typeof one === 'string' ? (scopes.get(one) ?? []) : [])));
}

/** Reads a claim by its name, or by a path such as `realm_access.roles`. */
function readClaim(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name.split('.').reduce<unknown>((value, part) => {
    return typeof value === 'object' && value !== null && Object.hasOwn(value, part)
      ? (value as Claims)[part]
      : undefined;
  }, claims);
}
