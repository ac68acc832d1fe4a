import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type FleetIdentity,
  fleetIdentityKey,
  fleetKeys,
  OLDEST_PROTOCOL_VERSION,
  PROTOCOL_VERSION,
  parseFleetIdentity,
  parseKeyspace,
  ShellfleetError,
  speaksProtocol,
  toFleetIdentity,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { throwQueueError, toQueueError } from '../queue-error.ts';

// IDENTITY-1. A namespace of a Redis has one identity, the first that is declared.
// IDENTITY-2. A process that knows a fleet's identity declares only that identity to a Redis that lost it.
// IDENTITY-3. A process that knows no identity waits first, so that after a loss a process that knows it declares it.
// IDENTITY-4. A lost fleet is marked as restoring before its identity is back. No session is opened until its hosts
//             have declared theirs.
// IDENTITY-5. The protocol version is declared with the identity. Processes that do not speak it use no key of the
//             fleet. A new fleet has the version of the process that declares it. A lost identity is declared again
//             with the oldest version that the process speaks, since older code may take part in the fleet.

/** Time that hosts have to declare the sessions that they serve. */
export const RESTORING_MS = 5_000;

/**
 * Time to wait for a known identity before a new one is declared. It is shorter for hosts, so that a host declares the
 * new identity.
 */
const PATIENCE_MS = { host: 1_000, producer: 5_000 };
const LOOK_EVERY_MS = 50;

const newFleetId = () => randomBytes(6).toString('hex');

/** Returns the identity of the fleet in this namespace. Declares a new identity when none appears in time. */
export async function joinFleet(redis: Redis, namespace: string, as: 'host' | 'producer'): Promise<string> {
  const until = performance.now() + PATIENCE_MS[as];
  for (;;) {
    const declared = await findFleet(redis, namespace);
    if (declared !== undefined) return declared;
    if (performance.now() >= until) return declareFleet(redis, namespace, newFleetId(), PROTOCOL_VERSION);
    await delay(LOOK_EVERY_MS);
  }
}

/** Declares an identity if the namespace has none. Returns the identity that the namespace has then. */
export async function declareFleet(
  redis: Redis,
  namespace: string,
  fleetId: string,
  version = OLDEST_PROTOCOL_VERSION,
): Promise<string> {
  // A read is tried first, because a full Redis refuses writes.
  const before = await findFleet(redis, namespace);
  if (before !== undefined) return before;
  await redis.set(fleetIdentityKey(namespace), toFleetIdentity(fleetId, version), 'NX').catch((error: unknown) => {
    throw isForbidden(error) ? nothingDeclared(namespace) : toQueueError(error);
  });
  return (await findFleet(redis, namespace)) ?? fleetId;
}

/** Declares the identity of a fleet that this Redis had before, as `declareFleet` does. */
export async function restoreFleet(redis: Redis, keyspace: string): Promise<string> {
  const { namespace, fleetId } = parseKeyspace(keyspace);
  const before = await findFleet(redis, namespace);
  if (before !== undefined) return before;
  await noteLoss(redis, keyspace);
  return declareFleet(redis, namespace, fleetId);
}

/**
 * Records that Redis lost data of this fleet. After the first record, its hosts have RESTORING_MS to declare their
 * sessions.
 */
export async function noteLoss(redis: Redis, keyspace: string): Promise<void> {
  // The write may fail, in a full Redis or without the permission. Then a host records the loss.
  await redis.set(fleetKeys(keyspace).restoring, '1', 'PX', RESTORING_MS, 'NX').catch(() => {});
}

/** Returns true if Redis lost data of this fleet within the last 5 s, or has lost its identity. */
export async function isRestoring(redis: Redis, keyspace: string): Promise<boolean> {
  const { namespace } = parseKeyspace(keyspace);
  const [identity, mark] = await redis
    .mget(fleetIdentityKey(namespace), fleetKeys(keyspace).restoring)
    .catch(throwQueueError);
  return identity === null || mark !== null;
}

/**
 * Throws FLEET_CONFLICT if another fleet has the namespace of this keyspace. Declares this fleet if the namespace has
 * none.
 */
export async function requireFleet(redis: Redis, keyspace: string, place: string): Promise<void> {
  const { namespace, fleetId } = parseKeyspace(keyspace);
  const declared = await restoreFleet(redis, keyspace);
  if (declared === fleetId) return;
  throw new ShellfleetError(
    'FLEET_CONFLICT',
    `This process uses the fleet ${fleetId}, and Redis at ${place} has the fleet ${declared} in the namespace ${namespace}.`,
    { namespace, fleetId, declared, place },
  );
}

const isForbidden = (error: unknown) => error instanceof Error && error.message.startsWith('NOPERM');

function nothingDeclared(namespace: string): ShellfleetError {
  return new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    `No fleet has begun in the namespace ${namespace} of this Redis, and this user may not begin one. Start a worker, or correct SHELLFLEET_REDIS_URL or SHELLFLEET_NAMESPACE.`,
    { namespace },
  );
}

/** Returns the id of the fleet that a namespace declares. Throws PROTOCOL_MISMATCH if it has another version. */
export async function findFleet(redis: Redis, namespace: string): Promise<string | undefined> {
  const declared = await readFleetIdentity(redis, namespace);
  if (declared !== undefined && !speaksProtocol(declared.protocol)) throw mismatch(namespace, declared.protocol);
  return declared?.fleetId;
}

/** Returns the identity that a namespace declares, of any protocol version. */
export async function readFleetIdentity(redis: Redis, namespace: string): Promise<FleetIdentity | undefined> {
  const key = fleetIdentityKey(namespace);
  const text = await redis.get(key).catch(throwQueueError);
  if (text === null) return undefined;
  const declared = parseFleetIdentity(text);
  if (declared !== undefined) return declared;
  throw new ShellfleetError(
    'REDIS_UNSUITABLE',
    `The key ${key} of Redis holds no identity of a fleet (12 hexadecimal digits, and a version). Another program may use this namespace: choose another one (SHELLFLEET_NAMESPACE).`,
    { setting: 'namespace', key },
  );
}

function mismatch(namespace: string, theirs: number): ShellfleetError {
  const remedy =
    theirs > PROTOCOL_VERSION
      ? 'Upgrade this process.'
      : 'Use the version that wrote them; or stop every worker of the fleet and give its sessions up: `shellfleet up --replace` removes them.';
  return new ShellfleetError(
    'PROTOCOL_MISMATCH',
    `The keys of the namespace ${namespace} in Redis have version ${theirs} of the protocol, and this process has version ${PROTOCOL_VERSION}. ${remedy}`,
    { namespace, theirs, ours: PROTOCOL_VERSION },
  );
}
