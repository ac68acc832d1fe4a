import { isLoopback, type OidcSettings, toOidcSettings } from '@shellfleet/access';
import { ShellfleetError, toIssueText } from '@shellfleet/protocol';
import { OIDC_SETTINGS, type OidcValues } from '@shellfleet/protocol/api-settings';
import { z } from 'zod';

/** Where a server for HTTP listens, and whom it admits. */
export interface HttpSettings {
  host: string;
  /** Port on which to listen, or 0 for a free one. */
  port: number;
  tls?: { cert: Buffer; key: Buffer } | undefined;
  /** Whether another address than loopback may be without TLS. */
  insecureHttp: boolean;
  /** Further names by which clients address the server. */
  allowedHosts: readonly string[];
  /** Issuer whose tokens are accepted beside API keys. */
  oidc?: OidcSettings | undefined;
}

/** Throws COMMAND_INVALID for an address at which others could read keys and output on the way. */
export function requireSafeAddress({ host, tls, insecureHttp }: HttpSettings): void {
  if (tls !== undefined || insecureHttp || isLoopback(host)) return;
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `${host} can be reached from other machines, and without TLS keys and output can be read on the way. Give --tls-cert and --tls-key, or --insecure-http if a proxy in front of it has TLS.`,
  );
}

/** Reads the issuer from the SHELLFLEET_OIDC_… variables. Throws COMMAND_INVALID. */
export function readOidc(env: NodeJS.ProcessEnv): OidcSettings | undefined {
  const schemas = Object.fromEntries(Object.entries(OIDC_SETTINGS).map(([name, { schema }]) => [name, schema]));
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = z.object(schemas).safeParse(given, { error: toIssueText });
  const oidc = parsed.success
    ? toOidcSettings(parsed.data as OidcValues)
    : parsed.error.issues.map(({ path, message }) => `${String(path[0])} ${message}`).join('; ');
  if (typeof oidc === 'string') throw new ShellfleetError('COMMAND_INVALID', `${oidc}.`);
  return oidc;
}
