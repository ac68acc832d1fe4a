import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FLEET_ID_PATTERN, ShellfleetError, toKeyspace } from '@shellfleet/protocol';
import { declareFleet, joinFleet } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

// OWN-FLEET-1. A host that has been part of a fleet stays in it: its containers and directories belong to that fleet.
// OWN-FLEET-2. The fleet id is in the state directory before this host creates anything under it.

/**
 * Returns the keyspace of the host's fleet, and declares the fleet id to a Redis that has none. Throws FLEET_CONFLICT
 * if Redis has another fleet. `directory` has a file with the fleet id for each namespace.
 */
export async function joinOwnFleet(redis: Redis, namespace: string, directory: string, place: string): Promise<string> {
  const path = join(directory, `${namespace}.id`);
  const kept = await readKept(path);
  const declared =
    kept === undefined ? await joinFleet(redis, namespace, 'host') : await declareFleet(redis, namespace, kept);
  if (kept === undefined) await keep(directory, path, declared);
  else if (declared !== kept) throw otherFleet({ path, kept, declared, namespace, place });
  return toKeyspace(namespace, declared);
}

async function readKept(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  if (FLEET_ID_PATTERN.test(text.trim())) return text.trim();
  throw new ShellfleetError(
    'FLEET_CONFLICT',
    `${path} holds no identity of a fleet (12 hexadecimal digits). Restore it: it is the first word of what Redis has at the key <namespace>:{x0}:fleet, and the label shellfleet.fleet of this host's containers.`,
    { path },
  );
}

async function keep(directory: string, path: string, fleetId: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(`${path}.new`, `${fleetId}\n`, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
}

interface Conflict {
  path: string;
  kept: string;
  declared: string;
  namespace: string;
  place: string;
}

function otherFleet({ path, kept, declared, namespace, place }: Conflict): ShellfleetError {
  return new ShellfleetError(
    'FLEET_CONFLICT',
    `This host belongs to the fleet ${kept} (${path}), and Redis at ${place} has the fleet ${declared} in the namespace ${namespace}. Nothing of either was changed. Point SHELLFLEET_REDIS_URL at the Redis of ${kept}; or, to serve ${declared} as well, start a worker with another SHELLFLEET_STATE_DIR; or, to give up ${kept} and its sessions here, run shellfleet prune --fleet ${kept} and remove ${path}.`,
    { path, fleetId: kept, declared, namespace, place },
  );
}
