import { fleetIdentityKey, fleetKeys, toFleetIdentity, toKeyspace } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { mastersOf } from '../open-redis.ts';
import { toQueueError } from '../queue-error.ts';

const KEYS_IN_CALL = 1_000;

/** Keys of a fleet except the keys of its audit, and the number of sessions and commands in them. */
export interface KeysOfFleet {
  sessions: number;
  commands: number;
  hosts: string[];
  byNode: Map<Redis, string[]>;
}

/** Finds the keys of a fleet by their names alone, because values of another protocol version cannot be parsed. */
export async function findKeysOfFleet(redis: Redis, namespace: string, fleetId: string): Promise<KeysOfFleet> {
  const keyspace = toKeyspace(namespace, fleetId);
  const found: KeysOfFleet = { sessions: 0, commands: 0, hosts: [], byNode: new Map() };
  const { audits, auditRecords, auditHeads, auditRemoved } = fleetKeys(keyspace);
  const ofAudit = new Set([audits, auditRecords, auditHeads, auditRemoved]);
  const isAudit = (key: string) => ofAudit.has(key) || /:host:[^:]+:audit$/.test(key);
  try {
    for (const node of mastersOf(redis)) {
      // A scan may return a key twice.
      const keys = new Set<string>();
      let cursor = '0';
      do {
        const [next, some] = await node.scan(cursor, 'MATCH', `${keyspace}:*`, 'COUNT', KEYS_IN_CALL);
        for (const key of some) if (!isAudit(key)) keys.add(key);
        cursor = next;
      } while (cursor !== '0');
      for (const key of keys) {
        if (/\{[^}:]+:[^}]+\}:state$/.test(key)) found.sessions += 1;
        if (/\{[^}:]+:[^}]+\}:record:[^:]+$/.test(key)) found.commands += 1;
        found.hosts.push(...(/:host:([^:]+):alive$/.exec(key)?.slice(1) ?? []));
      }
      found.byNode.set(node, [...keys]);
    }
  } catch (error) {
    throw toQueueError(error);
  }
  return found;
}

/** Removes these keys, then declares the fleet again with this version of the protocol. */
export async function removeKeysOfFleet(
  redis: Redis,
  { namespace, fleetId }: { namespace: string; fleetId: string },
  { byNode }: KeysOfFleet,
): Promise<void> {
  try {
    for (const [node, keys] of byNode) {
      for (let from = 0; from < keys.length; from += KEYS_IN_CALL) {
        // In a Cluster, the keys of one call must be in one slot.
        await Promise.all(keys.slice(from, from + KEYS_IN_CALL).map((key) => node.unlink(key)));
      }
    }
    await redis.set(fleetIdentityKey(namespace), toFleetIdentity(fleetId));
  } catch (error) {
    throw toQueueError(error);
  }
}
