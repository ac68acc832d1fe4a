import { glob, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fleetKeys, tenantKeys } from '@shellfleet/protocol';
import { filesOf } from './host-leftovers.ts';
import type { FleetInspector } from './inspect-fleet.ts';
import { keyspaceOf } from './keyspace.ts';
import type { TestFleet } from './start-fleet.ts';

/**
 * Everything of a fleet that nobody owns, as sentences: containers without a session, keys without an owner or an
 * expiry, files without a container, and processes that are no worker of the fleet. Empty after every run, whatever
 * died in it, once the fleet has cleaned up.
 */
export async function unowned(stack: TestFleet, inspector: FleetInspector): Promise<string[]> {
  const [containers, keys, files, processes] = await Promise.all([
    unownedContainers(stack, inspector),
    unownedKeys(stack, inspector),
    unownedFiles(stack, inspector),
    unownedProcesses(stack),
  ]);
  return [...containers, ...keys, ...files, ...processes].sort();
}

async function unownedContainers({ namespace }: TestFleet, inspector: FleetInspector): Promise<string[]> {
  const owners = await inspector.redis.hgetall(fleetKeys(keyspaceOf(namespace)).owners);
  const hostOf = (session: string) => owners[`default:${session}`]?.split(' ')[1];
  const containers = await inspector.containers();
  return containers
    .filter(({ session, hostId }) => hostOf(session) !== hostId)
    .map(({ id, session, hostId }) => `container ${id.slice(0, 12)} of ${session} on ${hostId}`);
}

/** Returns keys that do not expire and whose session is not in the index or whose host is not in the list of hosts. */
async function unownedKeys({ namespace }: TestFleet, { redis }: FleetInspector): Promise<string[]> {
  const keyspace = keyspaceOf(namespace);
  const [ids, hosts] = await Promise.all([
    redis.zrange(tenantKeys(keyspace, 'default').index, '0', '-1'),
    redis.zrange(fleetKeys(keyspace).hosts, '0', '-1'),
  ]);
  const sessions = ids.map((id) => `default:${id}`);
  const found: string[] = [];
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${namespace}:*`, 'COUNT', 1_000);
    cursor = next;
    for (const key of keys) {
      const session = /^[^:]+:\{([^}]*:[^}]*)\}:/.exec(key)?.[1];
      const host = /:host:([^:]+):/.exec(key)?.[1];
      const isOwned = session !== undefined ? sessions.includes(session) : host === undefined || hosts.includes(host);
      if (!isOwned && (await redis.pttl(key)) === -1) found.push(`key ${key}`);
    }
  } while (cursor !== '0');
  return found;
}

async function unownedFiles({ stateDirectory, namespace }: TestFleet, { docker }: FleetInspector): Promise<string[]> {
  const filters = { label: [`shellfleet.namespace=${namespace}`] };
  const containers = await docker.listContainers({ all: true, filters });
  const names = new Set(containers.flatMap(({ Names }) => Names.map((name) => name.replace('/shellfleet-', ''))));
  const files = await filesOf(stateDirectory);
  // Directories of the docker policy (s); the other kinds belong to processes on the host.
  return files
    .filter((path) => /\/s\/[^/]+$/.test(path) && !names.has(basename(path)))
    .map((path) => `directory ${path}`);
}

async function unownedProcesses({ namespace, workers }: TestFleet): Promise<string[]> {
  const own = new Set([process.pid, ...workers.map(({ pid }) => pid)]);
  const found: string[] = [];
  for await (const directory of glob('/proc/[0-9]*')) {
    const pid = Number(basename(directory));
    const environment = await readFile(`${directory}/environ`, 'utf8').catch(() => '');
    if (!own.has(pid) && environment.includes(`SHELLFLEET_NAMESPACE=${namespace}\0`)) found.push(`process ${pid}`);
  }
  return found;
}
