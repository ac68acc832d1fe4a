import { readFile } from 'node:fs/promises';
import { parseDocument } from '@shellfleet/policy';
import { describeRedis } from '@shellfleet/redis';
import { z } from 'zod';
import { REPLACED } from './redact-text.ts';

/** Variables whose values help and are no secrets. Of all others only the names are shown. */
const SHOWN = [
  ...['NAMESPACE', 'TENANT', 'STATE_DIR', 'CONFIG', 'HOST_ID', 'SLOTS', 'TOOL_SLOTS', 'POLICIES', 'TRANSPORT'],
  ...['DEFAULT_IMAGE', 'WORKSPACES', 'RETENTION', 'LOG_LEVEL', 'MIN_FREE_MEMORY', 'MIN_FREE_DISK', 'UIDS', 'USERS'],
  ...['METRICS_PORT', 'METRICS_HOST', 'LOG_SINK', 'AUDIT_SINK', 'WORKERS', 'IMAGE'],
  ...['API_HOST', 'API_PORT', 'API_ALLOWED_HOSTS', 'API_CORS_ORIGINS', 'API_RATE_LIMIT', 'API_INSECURE_HTTP'],
  ...['API_METRICS_PORT', 'API_METRICS_HOST', 'API_DRAIN', 'API_TLS_CERT'],
].map((name) => `SHELLFLEET_${name}`);

/** Returns the variables of this product in the environment. */
export function describeVariables(env: NodeJS.ProcessEnv): Record<string, string> {
  const own = Object.entries(env).filter(([name]) => name.startsWith('SHELLFLEET_'));
  return Object.fromEntries(own.sort().map(([name, value = '']) => [name, describeValue(name, value)]));
}

function describeValue(name: string, value: string): string {
  if (SHOWN.includes(name)) return value;
  if (name !== 'SHELLFLEET_REDIS_URL' || value === '') return '(set, not shown)';
  try {
    return describeRedis(value);
  } catch {
    return '(set, and not valid)';
  }
}

/** Reads the host's configuration file, if the environment names one, without fields whose names tell of secrets. */
export async function readHostConfiguration({ SHELLFLEET_CONFIG: path }: NodeJS.ProcessEnv): Promise<unknown> {
  if (!path) return 'SHELLFLEET_CONFIG is not set here.\n';
  return withoutSecrets(parseDocument(await readFile(path, 'utf8'), z.unknown(), path));
}

/** Names of fields that have a secret. Names of files and public keys are none. */
const SECRET_FIELD =
  /(?:password|passwd|secret|token|credential|authorization|cookie|(?:private|api|access|secret|signing)[-_]?key)s?$/i;

function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value);
  return Object.fromEntries(
    fields.map(([name, inner]) => [name, SECRET_FIELD.test(name) ? REPLACED : withoutSecrets(withoutPath(inner))]),
  );
}

/** Replaces the path of a web address, which may be a secret, as that of a webhook. */
const withoutPath = (value: unknown) =>
  typeof value === 'string' ? value.replace(/^(https?:\/\/[^/?#]+)[/?#].+$/i, `$1/${REPLACED}`) : value;
