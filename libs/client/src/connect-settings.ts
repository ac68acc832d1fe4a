import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  type Caller,
  callerSchema,
  DEFAULTS,
  namespaceSchema,
  parseOrThrow,
  ShellfleetError,
  tenantIdSchema,
} from '@shellfleet/protocol';
import { describeRedis } from '@shellfleet/redis';
import { parsePrivateKey } from '@shellfleet/sealing';
import { z } from 'zod';
import { type FleetFile, fleetFilePath, readFleetFile } from './fleet-file.ts';
import type { SubmitInterceptor } from './submit/interceptors.ts';

/** The fleet to connect to, and the identity of the client. */
export interface ConnectOptions {
  /**
   * `redis://[user:password@]host:port[/db]`, `redis+sentinel://host:port,host:port/name` or
   * `redis+cluster://host:port,host:port`; `rediss` for TLS.
   * @default `SHELLFLEET_REDIS_URL`, else the connection file that `up` wrote for this user
   */
  redisUrl?: string | undefined;
  /**
   * The fleet's name in Redis.
   * @default `SHELLFLEET_NAMESPACE`, else that of the connection file, else `shellfleet`
   */
  namespace?: string | undefined;
  /**
   * Name of the tenant. Sessions of other tenants cannot be seen or used.
   * @default `SHELLFLEET_TENANT`, else `default`
   */
  tenant?: string | undefined;
  /**
   * Keys in base64 or hex. The first one seals, and all of them open. Without a key, sessions, hosts, the queue and
   * output can be read, and nothing can be submitted, opened or answered.
   * @default `SHELLFLEET_SEAL_KEY` (separated by commas), else the keys of the connection file
   * @limit 32 bytes each
   */
  sealKeys?: string[] | undefined;
  /**
   * Ed25519 private key as PEM or base64, or the path of its file, which signs everything that this process submits,
   * opens and answers, for hosts that require it.
   * @default `SHELLFLEET_SIGNING_KEY`, else nothing is signed
   */
  signingKey?: string | undefined;
  /**
   * Functions that run around every submit, the first one outermost. See SubmitInterceptor.
   * @default none
   */
  interceptors?: SubmitInterceptor[] | undefined;
  /**
   * Who uses this client, for a service that acts for others. What it submits names the caller to people and in the
   * audit; its answers have the caller's name, and it cannot answer questions about what the caller submitted.
   * @default none: it submits without a name, and answers with the name of the user and the machine of this process
   * @limit 256 characters each
   */
  caller?: Caller | undefined;
}

export interface ConnectSettings {
  redisUrl: string;
  namespace: string;
  /**
   * Address of the fleet, and the setting that determined it, as the end of a sentence. A second sentence follows if
   * settings differ.
   */
  place: string;
  tenant: string;
  sealKeys: string[];
  signingKey: KeyObject | undefined;
  interceptors: readonly SubmitInterceptor[];
  caller?: Caller | undefined;
}

const optionsSchema = z.strictObject({
  redisUrl: z.string('must be a string').min(1, 'must not be empty').optional(),
  namespace: namespaceSchema.optional(),
  tenant: tenantIdSchema.optional(),
  sealKeys: z.array(z.string('must be a string'), 'must be a list of keys').min(1, 'must hold a key').optional(),
  signingKey: z.string('must be a string').min(1, 'must not be empty').optional(),
  interceptors: z
    .array(
      z.custom<SubmitInterceptor>((value) => typeof value === 'function', 'must be a function'),
      'must be a list of functions',
    )
    .default([]),
  caller: callerSchema.optional(),
});

/**
 * Returns the address of the fleet, from the caller, SHELLFLEET_… or the connection file. Throws COMMAND_INVALID,
 * QUEUE_UNAVAILABLE.
 */
export async function resolveSettings(options: ConnectOptions, env: NodeJS.ProcessEnv): Promise<ConnectSettings> {
  const given = parseOrThrow(
    optionsSchema,
    typeof options === 'object' && options !== null ? { ...fromEnvironment(env), ...definedOf(options) } : options,
    'COMMAND_INVALID',
    'Fleet.connect',
  );
  const needsFile = given.redisUrl === undefined || given.sealKeys === undefined;
  const file = needsFile ? await readFleetFile(env) : undefined;
  const redisUrl = given.redisUrl ?? file?.redisUrl;
  if (redisUrl === undefined) throw noFleet(env);
  // The keys and names in the file are used only with the Redis in the file.
  const own = file?.redisUrl === redisUrl ? file : undefined;
  return {
    redisUrl,
    namespace: given.namespace ?? own?.namespace ?? DEFAULTS.connection.namespace,
    place: describePlace(given, own, redisUrl, env),
    tenant: given.tenant ?? DEFAULTS.connection.tenant,
    sealKeys: given.sealKeys ?? own?.sealKeys ?? [],
    signingKey: await readSigningKey(given.signingKey),
    interceptors: given.interceptors,
    caller: given.caller,
  };
}

function describePlace(
  given: Pick<ConnectOptions, 'namespace'>,
  file: FleetFile | undefined,
  redisUrl: string,
  env: NodeJS.ProcessEnv,
): string {
  const path = fleetFilePath(env);
  const originOf = (value: string | undefined, name: string, inFile: string | undefined) => {
    if (value !== undefined) return value === env[name] ? name : 'as given';
    return inFile === undefined ? `the usual one, because ${name} is not set` : path;
  };
  const namespace = given.namespace ?? file?.namespace ?? DEFAULTS.connection.namespace;
  const ofNamespace = originOf(given.namespace, 'SHELLFLEET_NAMESPACE', file?.namespace);
  const isFromFile = file !== undefined && redisUrl !== env.SHELLFLEET_REDIS_URL;
  const ofRedis = isFromFile ? path : originOf(redisUrl, 'SHELLFLEET_REDIS_URL', undefined);
  const differs =
    file === undefined || file.namespace === namespace ? '' : ` But ${path} has the namespace ${file.namespace}.`;
  return `the namespace ${namespace} (${ofNamespace}) of Redis at ${describeRedis(redisUrl)} (${ofRedis}).${differs}`;
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
    signingKey: env.SHELLFLEET_SIGNING_KEY || undefined,
  });
}

async function readSigningKey(given: string | undefined): Promise<KeyObject | undefined> {
  if (given === undefined) return undefined;
  const key = parsePrivateKey(given) ?? parsePrivateKey(await readFile(given, 'utf8').catch(() => ''));
  if (key !== undefined) return key;
  const message =
    'must be an Ed25519 private key as PEM or base64, or the path of a file with one; `openssl genpkey -algorithm ed25519` makes one';
  throw new ShellfleetError('COMMAND_INVALID', `Fleet.connect: signingKey ${message}.`, {
    issues: [{ path: 'signingKey', message }],
  });
}

function definedOf(options: ConnectOptions): ConnectOptions {
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
