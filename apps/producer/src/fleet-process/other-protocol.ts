import { setTimeout as delay } from 'node:timers/promises';
import { ALIVE_MS, PROTOCOL_VERSION, speaksProtocol } from '@shellfleet/protocol';
import {
  connectRedis,
  findKeysOfFleet,
  type KeysOfFleet,
  readFleetIdentity,
  removeKeysOfFleet,
} from '@shellfleet/redis';
import { SetupError } from '@shellfleet/setup';
import { count } from './fleet-use.ts';

const POLL_MS = 500;

interface Removal {
  /** True to remove the keys. Otherwise the keys stay, and a SetupError reports how many there are. */
  replace: boolean;
  report: (line: string) => void;
  signal: AbortSignal;
}

/** Removes keys of a fleet with another protocol version in this namespace, unless one of its hosts is up. */
export async function removeOtherProtocol(
  { redisUrl, namespace }: { redisUrl: string; namespace: string },
  { replace, report, signal }: Removal,
): Promise<void> {
  const { redis } = await connectRedis(redisUrl, 'producer', 'shellfleet-up');
  try {
    const identity = await readFleetIdentity(redis, namespace);
    if (identity === undefined || speaksProtocol(identity.protocol)) return;
    const { fleetId, protocol } = identity;
    let found = await findKeysOfFleet(redis, namespace, fleetId);
    const where = `of version ${protocol} of the protocol in the namespace ${namespace}`;
    if (!replace)
      throw new SetupError(
        `Redis has keys ${where}, and this process has version ${PROTOCOL_VERSION}: ${describe(found)}. Nothing was changed.`,
        'up --replace removes them; the version that wrote them goes on with them',
      );
    // A killed host counts as up until its last heartbeat expires.
    for (const endsAt = Date.now() + 2 * ALIVE_MS; found.hosts.length > 0 && Date.now() < endsAt; ) {
      await delay(POLL_MS, undefined, { signal });
      found = await findKeysOfFleet(redis, namespace, fleetId);
    }
    if (found.hosts.length > 0)
      throw new SetupError(
        `Workers that \`up\` did not start use the keys ${where}: hosts ${found.hosts.join(', ')}. No key was removed.`,
        'stop them, then run up --replace again',
      );
    report(`Removing the keys ${where}: ${describe(found)}. The heads of its audit stay.`);
    await removeKeysOfFleet(redis, { namespace, fleetId }, found);
  } finally {
    redis.disconnect();
  }
}

function describe({ sessions, commands, byNode }: KeysOfFleet): string {
  const keys = [...byNode.values()].reduce((sum, some) => sum + some.length, 0);
  return `${count(sessions, 'session')}, ${count(commands, 'command')}, ${count(keys, 'key')}`;
}
