import { Connection } from './connection.ts';

// CONNECTION-1. A process has one Connection per Redis URL, for any number of fleets, tenants and namespaces.
// CONNECTION-2. A Connection is closed when its last user has released it. A later acquire opens a new one.

interface Shared {
  users: number;
  opening: Promise<Connection>;
}

/** The right to use a connection, until it is released. */
export interface ConnectionLease {
  connection: Connection;
  /** Releases the connection, once. Resolves when the connection is closed, or at once while others use it. */
  release(): Promise<void>;
}

const connections = new Map<string, Shared>();

/** Opens a connection to this Redis, or shares the process's own. Throws QUEUE_UNAVAILABLE, REDIS_UNSUITABLE. */
export async function acquireConnection(redisUrl: string): Promise<ConnectionLease> {
  const key = toKey(redisUrl);
  const entry = connections.get(key) ?? { users: 0, opening: Connection.open(redisUrl) };
  connections.set(key, entry);
  entry.users++;
  const release = async () => {
    if (--entry.users > 0) return;
    connections.delete(key);
    await (await entry.opening).close();
  };
  try {
    return { connection: await entry.opening, release };
  } catch (error) {
    await release().catch(() => {});
    throw error;
  }
}

/** Returns the same key for URLs of the same server, database and user. */
function toKey(redisUrl: string): string {
  if (!URL.canParse(redisUrl)) return redisUrl;
  const { protocol, username, password, hostname, port, pathname, search } = new URL(redisUrl);
  const database = pathname.replace(/^\//, '') || '0';
  return [protocol, username || 'default', password, hostname, port || '6379', database, search].join('\n');
}
