import { readFileSync } from 'node:fs';
import { isLoopback, type OidcSettings, toOidcSettings } from '@shellfleet/access';
import { readTracingChoice, type TracingChoice, toIssueText } from '@shellfleet/protocol';
import { API_SETTINGS, type SettingValues } from '@shellfleet/protocol/api-settings';
import { z } from 'zod';

// The only reader of the environment in this app.

export interface ApiConfig {
  host: string;
  /** Port of the operator's choice. Without it, the usual one, or a free one if that is taken. */
  port: number | undefined;
  tls: { cert: Buffer; key: Buffer } | undefined;
  /** Whether keys and output can be read on the way to another machine. */
  insecure: boolean;
  allowedHosts: string[];
  corsOrigins: string[];
  /** Requests per second and key. */
  rateLimit: number;
  drainMs: number;
  metrics: { host: string; port: number } | undefined;
  /** The issuer whose tokens are accepted beside API keys. */
  oidc: OidcSettings | undefined;
  logLevel: string;
  /** How spans are exported, why they are not, or undefined if nobody asks for them. */
  tracing: TracingChoice | string | undefined;
}

/** Invalid settings. The message names each. */
export class ApiConfigError extends Error {}

/** Reads the settings from the variables. Throws an ApiConfigError. */
export function readApiConfig(env: NodeJS.ProcessEnv = process.env): ApiConfig {
  const values = readValues(env);
  const { SHELLFLEET_API_HOST: host, SHELLFLEET_API_METRICS_PORT: metricsPort } = values;
  const tls = readTls(values);
  const insecure = tls === undefined && !isLoopback(host);
  if (insecure && values.SHELLFLEET_API_INSECURE_HTTP === '0')
    throw new ApiConfigError(
      `SHELLFLEET_API_HOST: ${host} can be reached from other machines, and without TLS keys and output can be read on the way. Set SHELLFLEET_API_TLS_CERT and SHELLFLEET_API_TLS_KEY, or SHELLFLEET_API_INSECURE_HTTP=1 (--insecure-http) if a proxy in front of it has TLS.`,
    );
  return {
    ...{ host, tls, insecure },
    port: values.SHELLFLEET_API_PORT,
    allowedHosts: values.SHELLFLEET_API_ALLOWED_HOSTS.map((name) => name.toLowerCase()),
    corsOrigins: values.SHELLFLEET_API_CORS_ORIGINS.map((text) => new URL(text).origin),
    rateLimit: values.SHELLFLEET_API_RATE_LIMIT,
    drainMs: values.SHELLFLEET_API_DRAIN,
    metrics: metricsPort === undefined ? undefined : { host: values.SHELLFLEET_API_METRICS_HOST, port: metricsPort },
    oidc: readOidc(values),
    logLevel: values.SHELLFLEET_LOG_LEVEL,
    tracing: readTracingChoice(env),
  };
}

function readValues(env: NodeJS.ProcessEnv): SettingValues {
  const schemas = Object.fromEntries(Object.entries(API_SETTINGS).map(([name, { schema }]) => [name, schema]));
  // An empty variable counts as not set, as in compose files.
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = z.object(schemas).safeParse(given, { error: toIssueText });
  if (parsed.success) return parsed.data as SettingValues;
  throw new ApiConfigError(parsed.error.issues.map(({ path, message }) => `${String(path[0])} ${message}`).join('; '));
}

function readOidc(values: SettingValues): OidcSettings | undefined {
  const settings = toOidcSettings(values);
  if (typeof settings === 'string') throw new ApiConfigError(settings);
  return settings;
}

function readTls(values: SettingValues): ApiConfig['tls'] {
  const { SHELLFLEET_API_TLS_CERT: cert, SHELLFLEET_API_TLS_KEY: key } = values;
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new ApiConfigError('SHELLFLEET_API_TLS_CERT and SHELLFLEET_API_TLS_KEY are set together');
  return { cert: readPem('SHELLFLEET_API_TLS_CERT', cert), key: readPem('SHELLFLEET_API_TLS_KEY', key) };
}

function readPem(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ApiConfigError(`${name}: cannot read ${path} (${(error as NodeJS.ErrnoException).code})`);
  }
}
