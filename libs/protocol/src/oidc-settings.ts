import { z } from 'zod';
import { SCOPES, type Scope, scopesSchema } from './api-key.ts';
import { tenantIdSchema } from './ids.ts';

// The settings of servers that accept tokens of an OpenID Connect issuer. The servers for HTTP and MCP share them.

/** Algorithms of signatures that only the issuer can make. With HS256 the public key would be the secret. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
] as const;

const toItems = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

const issuer = z.string().superRefine((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.includes(url.hostname))) return;
  context.addIssue({ code: 'custom', message: 'must be a URL that begins with https://' });
});

const claim = z.string().min(1, 'must be the name of a claim');

/** Parses `value=scope+scope,value=scope`. */
const scopesOfValues = z.string().transform((text, context) => {
  const scopes = new Map<string, readonly Scope[]>();
  for (const item of toItems(text)) {
    const at = item.lastIndexOf('=');
    const parsed = scopesSchema.safeParse(item.slice(at + 1).split('+'));
    if (at > 0 && parsed.success) scopes.set(item.slice(0, at), parsed.data);
    else context.addIssue(`must be VALUE=SCOPE+SCOPE,… with the scopes ${SCOPES.join(', ')}`);
  }
  return scopes;
});

const algorithms = z
  .string()
  .transform(toItems)
  .pipe(z.array(z.enum(ALGORITHMS, `must be of ${ALGORITHMS.join(', ')}`)).min(1, 'must name an algorithm'));

interface OidcSetting {
  flag: string;
  schema: z.ZodType;
  text: string;
}

export const OIDC_SETTINGS = {
  SHELLFLEET_OIDC_ISSUER: {
    flag: '--oidc-issuer <url>',
    schema: issuer.optional(),
    text: 'OpenID Connect issuer whose tokens are accepted beside API keys',
  },
  SHELLFLEET_OIDC_AUDIENCE: {
    flag: '--oidc-audience <name>',
    schema: z.string().optional(),
    text: 'audience (`aud`) that a token must have',
  },
  SHELLFLEET_OIDC_TENANT: {
    flag: '--oidc-tenant <name>',
    schema: tenantIdSchema.optional(),
    text: 'tenant of all callers with a token',
  },
  SHELLFLEET_OIDC_TENANT_CLAIM: {
    flag: '--oidc-tenant-claim <claim>',
    schema: claim.optional(),
    text: 'claim with the tenant of the caller, in place of one tenant for all',
  },
  SHELLFLEET_OIDC_SCOPE_CLAIM: {
    flag: '--oidc-scope-claim <claim>',
    schema: claim.default('scope'),
    text: 'claim that is mapped to scopes: a list, or words in a text; default: scope',
  },
  SHELLFLEET_OIDC_SCOPES: {
    flag: '--oidc-scopes <map>',
    schema: scopesOfValues.prefault(SCOPES.map((scope) => `shellfleet:${scope}=${scope}`).join(',')),
    text: 'scopes of each value of that claim, such as `agents=submit+read,leads=read+approve`; default: `shellfleet:submit=submit` and so on',
  },
  SHELLFLEET_OIDC_NAME_CLAIM: {
    flag: '--oidc-name-claim <claim>',
    schema: claim.default('preferred_username'),
    text: 'claim with the name of the caller, which people see beside answers; default: preferred_username',
  },
  SHELLFLEET_OIDC_ALGORITHMS: {
    flag: '--oidc-algorithms <list>',
    schema: algorithms.prefault('RS256,PS256,ES256,EdDSA'),
    text: 'algorithms by which tokens may be signed, each with a public key; default: RS256,PS256,ES256,EdDSA',
  },
} as const satisfies Record<`SHELLFLEET_OIDC_${string}`, OidcSetting>;

type Settings = typeof OIDC_SETTINGS;
/** The value of each setting, by its variable. */
export type OidcValues = { [Name in keyof Settings]: z.output<Settings[Name]['schema']> };
