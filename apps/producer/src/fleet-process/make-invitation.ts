import { randomBytes } from 'node:crypto';
import { ensureShellfleetError, ShellfleetError, workerAclRules } from '@shellfleet/protocol';
import { type Connected, connectRedis, describeRedis, findFleet, joinFleet, parseRedisUrl } from '@shellfleet/redis';
import type { Invitation } from './invitation.ts';

export interface InvitingFleet {
  redisUrl: string;
  namespace: Invitation['namespace'];
  sealKeys: string[];
  /** URL of Redis as the invited machine has to write it. With a user, that user is the worker's. */
  workerRedisUrl: string | undefined;
  /** Whether to begin the fleet. Otherwise it must have begun. */
  isNew: boolean;
}

export interface MadeInvitation {
  invitation: Invitation;
  /** The new Redis user. Undefined if the URL for workers names one. */
  user?: string;
  /** Why Redis may forget the new user, as a sentence. */
  warning?: string | undefined;
}

/** Makes an invitation to the fleet, with a Redis user for it unless the URL for workers names one. */
export async function makeInvitation(fleet: InvitingFleet): Promise<MadeInvitation> {
  const { redisUrl, namespace, sealKeys } = fleet;
  const url = fleet.workerRedisUrl ?? redisUrl;
  refuseLoopback(url);
  const { redis } = await connectRedis(redisUrl, 'producer', 'shellfleet-invite');
  try {
    const fleetId = await findOrBegin(redis, fleet);
    const invitation = { version: 1, redisUrl: url, namespace, fleetId, sealKeys } as const;
    if (fleet.workerRedisUrl !== undefined && parseRedisUrl(fleet.workerRedisUrl).username !== undefined)
      return { invitation };
    if (parseRedisUrl(redisUrl).kind !== 'single') throw noUserForAll(redisUrl);
    const user = `worker-${randomBytes(4).toString('hex')}`;
    const password = randomBytes(24).toString('hex');
    await addUser(redis, user, ['reset', 'on', `>${password}`, ...workerAclRules(namespace)]);
    return {
      invitation: { ...invitation, redisUrl: withUser(url, user, password) },
      user,
      warning: await keepUsers(redis, user),
    };
  } finally {
    redis.disconnect();
  }
}

/** Returns the identity of the fleet. A fleet that is said to be new must not have begun, and any other must have. */
async function findOrBegin(redis: Connected['redis'], { redisUrl, namespace, isNew }: InvitingFleet): Promise<string> {
  const found = await findFleet(redis, namespace);
  if (found !== undefined && isNew) throw hasFleet(namespace, redisUrl, found);
  if (found === undefined && !isNew) throw noFleetYet(namespace, redisUrl);
  return found ?? joinFleet(redis, namespace, 'host');
}

/** Throws for an address that means another Redis, or none, on the invited machine. */
function refuseLoopback(url: string): void {
  const near = parseRedisUrl(url).nodes.find(({ host }) => /^(?:localhost|127(?:\.\d+){3}|::1)$/.test(host));
  if (near === undefined) return;
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `Redis at ${describeRedis(url)} can be reached from this machine only. Let it listen on an address that the other machines reach, and name that with --worker-redis-url redis://ADDRESS:PORT. The Redis that \`up\` starts stays on this machine: a fleet of several machines needs one of its own (docs/deploy.md).`,
    { place: describeRedis(url) },
  );
}

async function addUser(redis: Connected['redis'], user: string, rules: string[]): Promise<void> {
  await redis.call('ACL', 'SETUSER', user, ...rules).catch((error: unknown) => {
    throw new ShellfleetError(
      'COMMAND_INVALID',
      `This user of Redis may not add users (${ensureShellfleetError(error).message}). Use one that may; or add the worker's user of docs/operations.md by hand, and name it with --worker-redis-url redis://USER:PASSWORD@HOST:PORT.`,
    );
  });
}

/** Has Redis write its users to its disk. Returns why it did not, as a sentence. */
async function keepUsers(redis: Connected['redis'], user: string): Promise<string | undefined> {
  for (const [command, action] of [
    ['ACL', 'SAVE'],
    ['CONFIG', 'REWRITE'],
  ] as const) {
    const isKept = await redis.call(command, action).then(
      () => true,
      () => false,
    );
    if (isKept) return undefined;
  }
  return `Redis has neither an ACL file nor a configuration file that it can write, so it forgets the user ${user} when it restarts.`;
}

/** Puts the user into a `redis[s]://` URL, in the place of one that it has. */
function withUser(url: string, user: string, password: string): string {
  return url.replace(/^(rediss?:\/\/)(?:[^@/?#]*@)?/, `$1${user}:${password}@`);
}

function noFleetYet(namespace: string, redisUrl: string): ShellfleetError {
  return new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    `No fleet has begun in the namespace ${namespace} of Redis at ${describeRedis(redisUrl)}. Begin one with --new-fleet, or start its first worker.`,
    { namespace },
  );
}

function hasFleet(namespace: string, redisUrl: string, fleetId: string): ShellfleetError {
  return new ShellfleetError(
    'FLEET_CONFLICT',
    `The namespace ${namespace} of Redis at ${describeRedis(redisUrl)} has the fleet ${fleetId}. Leave --new-fleet out to invite a worker to it, or name another namespace.`,
    { namespace, fleetId },
  );
}

function noUserForAll(redisUrl: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `Redis at ${describeRedis(redisUrl)} has several nodes, which do not share their users. Add the worker's user of docs/operations.md to each, and name it with --worker-redis-url.`,
  );
}
