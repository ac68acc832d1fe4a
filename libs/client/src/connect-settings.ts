import { namespaceSchema, parseOrThrow, ShellfleetError, tenantIdSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { fleetFilePath, readFleetFile } from './fleet-file.ts';

export interface ConnectOptions {
  redisUrl?: string;
  namespace?: string;
  tenant?: string;
  /** 32 bytes each, in base64 or hex; the first seals, any opens. */
  sealKeys?: string[];
}

export interface ConnectSettings {
  redisUrl: string;
  namespace: string;
  tenant: string;
  sealKeys: string[];
}

const DEFAULT_NAMESPACE = 'shellfleet';
const DEFAULT_TENANT = 'default';

const optionsSchema = z.strictObject({
  redisUrl: z.string('must be a string').min(1, 'must not be empty').optional(),
  namespace: namespaceSchema.optional(),
  tenant: tenantIdSchema.optional(),
  sealKeys: z.array(z.string('must be a string')).min(1, 'must hold a key').optional(),
});

/** Where the fleet is: what the caller says, else SHELLFLEET_…, else the file that `up` left for this user. */
export async function resolveSettings(options: ConnectOptions, env: NodeJS.ProcessEnv): Promise<ConnectSettings> {
  const given = parseOrThrow(
    optionsSchema,
    { ...fromEnvironment(env), ...definedOf(options) },
    'COMMAND_INVALID',
    'Fleet.connect',
  );
  const needsFile = given.redisUrl === undefined || given.sealKeys === undefined;
  const file = needsFile ? await readFleetFile(env) : undefined;
  const redisUrl = given.redisUrl ?? file?.redisUrl;
  if (redisUrl === undefined) throw noFleet(env);
  // The file's keys and names belong to its Redis, and to no other.
  const own = file?.redisUrl === redisUrl ? file : undefined;
  return {
    redisUrl,
    namespace: given.namespace ?? own?.namespace ?? DEFAULT_NAMESPACE,
    tenant: given.tenant ?? DEFAULT_TENANT,
    sealKeys: given.sealKeys ?? own?.sealKeys ?? [],
  };
}

function fromEnvironment(env: NodeJS.ProcessEnv): ConnectOptions {
  const keys = env.SHELLFLEET_SEAL_KEY?.split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '');
  return definedOf({
    redisUrl: env.SHELLFLEET_REDIS_URL || undefined,
    namespace: env.SHELLFLEET_NAMESPACE || undefined,
    tenant: env.SHELLFLEET_TENANT || undefined,
    sealKeys: keys?.length ? keys : undefined,
  });
}

function definedOf(options: { [name in keyof ConnectOptions]: ConnectOptions[name] | undefined }): ConnectOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function noFleet(env: NodeJS.ProcessEnv): ShellfleetError {
  const path = fleetFilePath(env);
  return new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    `No fleet was found: there is no ${path}, and SHELLFLEET_REDIS_URL is not set. Start one with \`npm start\` or \`npx shellfleet up\`, or set SHELLFLEET_REDIS_URL.`,
    { path },
  );
}
