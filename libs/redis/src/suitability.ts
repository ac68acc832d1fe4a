import { ShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { lastInfoOf, parseInfo } from './identity.ts';
import { isCluster, mastersOf } from './open-redis.ts';
import { NOT_REDIS } from './read-refusal.ts';

const OLDEST_REDIS = [6, 2] as const;

/**
 * Checks that each node is fit to hold accepted commands. Throws REDIS_UNSUITABLE with the setting that makes a node
 * unfit.
 */
export async function refuseUnsuitable(
  redis: Redis,
  place: string,
  ask: (node: Redis) => Promise<Map<string, string>> = askInfo,
): Promise<{ persistent: boolean }> {
  // If some primaries are down, the sessions on the others can still continue.
  const replies = await Promise.allSettled(mastersOf(redis).map(ask));
  const infos = replies.flatMap((reply) => (reply.status === 'fulfilled' ? [reply.value] : []));
  const failed = replies.find((reply) => reply.status === 'rejected');
  if (infos.length === 0) throw failed?.reason ?? new Error('no node of the Cluster is known');
  for (const info of infos) refuseNode(info, place, isCluster(redis));
  return { persistent: infos.every((info) => info.get('aof_enabled') !== '0') };
}

async function askInfo(node: Redis): Promise<Map<string, string>> {
  return parseInfo(await node.info());
}

/** Returns the INFO that ioredis read when it made the connection, or asks for it. */
export async function infoOfNewConnection(node: Redis): Promise<Map<string, string>> {
  return lastInfoOf(node) ?? askInfo(node);
}

function refuseNode(info: Map<string, string>, place: string, asCluster: boolean): void {
  const version = info.get('redis_version') ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const refuse = (setting: string, message: string): never => {
    throw unsuitable(place, setting, message, { version });
  };
  if (major < OLDEST_REDIS[0] || (major === OLDEST_REDIS[0] && minor < OLDEST_REDIS[1])) {
    refuse('redis_version', `is version ${version}; Shellfleet needs ${OLDEST_REDIS.join('.')} or newer.`);
  }
  const policy = info.get('maxmemory_policy') ?? 'noeviction';
  if (policy !== 'noeviction') {
    refuse(
      'maxmemory-policy',
      `has maxmemory-policy ${policy}, so it may drop accepted commands. Set it: CONFIG SET maxmemory-policy noeviction.`,
    );
  }
  if (info.get('role') === 'slave')
    refuse('replicaof', 'is a replica and takes no writes. Point SHELLFLEET_REDIS_URL at its primary.');
  if (info.get('cluster_enabled') === '1' && !asCluster)
    refuse(
      'cluster-enabled',
      'is a node of a Cluster. Set SHELLFLEET_REDIS_URL to redis+cluster://host:port,host:port.',
    );
}

/**
 * Replies with which Redis refuses a client: for each, a pattern, the setting that causes it, and a message with the
 * next step.
 */
const REFUSALS: [RegExp, setting: string, (reply: string) => string][] = [
  [
    /WRONGPASS|invalid username-password|invalid password/,
    'requirepass',
    () => 'refuses this user or password. Correct them in SHELLFLEET_REDIS_URL: redis://user:password@host:port.',
  ],
  [
    /NOAUTH|Authentication required/,
    'requirepass',
    () => 'needs a password. Name it in SHELLFLEET_REDIS_URL: redis://user:password@host:port.',
  ],
  [
    /NOPERM/,
    'acl',
    (reply) =>
      `does not let this user do its part: ${reply.replace(/^NOPERM /, '')}. Give it the ACL of docs/operations.md.`,
  ],
  [
    /protected mode/,
    'protected-mode',
    () => 'is in protected mode and takes no clients of other machines. Give it a password (requirepass).',
  ],
  [
    /certificate|CERT_/i,
    'tls',
    (reply) =>
      `has a certificate that is not trusted: ${reply}. Name its authority: rediss://host:port?ca=/path/to/ca.pem, or NODE_EXTRA_CA_CERTS.`,
  ],
  [
    /No such master|invalid reply: null/,
    'sentinel',
    () => 'knows no primary of this name. Correct it in SHELLFLEET_REDIS_URL: redis+sentinel://host:port/name.',
  ],
  [
    /max number of clients/,
    'maxclients',
    () => 'has as many clients as it may. Raise maxclients, or end some of them.',
  ],
  [
    // ioredis reports an unknown type when the first byte of an answer, for example of an HTTP server, begins no reply.
    new RegExp(`Unknown RESP type|${NOT_REDIS}`),
    'port',
    () =>
      'is no Redis: the address answers, but not in the protocol of Redis. Set SHELLFLEET_REDIS_URL (--redis-url) to the address of a Redis, with rediss:// for TLS.',
  ],
  [
    /cluster support disabled/,
    'cluster-enabled',
    () => 'is no Cluster. Set SHELLFLEET_REDIS_URL to redis://host:port.',
  ],
];

/** Converts a failed connection. `networkError` is the connection's own error, if it reported one. */
export function toConnectError(error: unknown, place: string, networkError?: unknown): ShellfleetError {
  if (error instanceof ShellfleetError) return error;
  const reason = describeFailure(networkError ?? error);
  for (const [pattern, setting, describe] of REFUSALS) {
    if (pattern.test(reason)) return unsuitable(place, setting, describe(reason), {}, error);
  }
  return new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    `Redis at ${place} cannot be reached: ${reason}. Start it, or set SHELLFLEET_REDIS_URL.`,
    { place },
    { cause: error },
  );
}

function unsuitable(
  place: string,
  setting: string,
  message: string,
  context: Record<string, unknown>,
  cause?: unknown,
): ShellfleetError {
  return new ShellfleetError(
    'REDIS_UNSUITABLE',
    `Redis at ${place} ${message}`,
    { place, setting, ...context },
    cause === undefined ? {} : { cause },
  );
}

/** Returns the reason of a failure. It is nested if the error is about several addresses or about a Cluster. */
function describeFailure(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describeFailure).join(', ');
  if (error instanceof Error && 'lastNodeError' in error && error.lastNodeError)
    return describeFailure(error.lastNodeError);
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}
