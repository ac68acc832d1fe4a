import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { totalmem } from 'node:os';

export type RedisConfig = { port: number; password: string };

export type RedisSettings = RedisConfig & {
  dataDirectory: string;
  /** Addresses on which Redis listens: loopback, or every address of its container. */
  bind: string;
  maxMemoryBytes: number;
  persistent: boolean;
};

/**
 * Returns the configuration of an embedded Redis. It has `noeviction`, so that no entries are lost, and a limit of
 * memory, because a Redis that the kernel kills loses more than a Redis that rejects a write.
 */
export function renderRedisConfig(settings: RedisSettings): string {
  const lines = [
    `bind ${settings.bind}`,
    `port ${settings.port}`,
    `requirepass ${settings.password}`,
    `dir ${JSON.stringify(settings.dataDirectory)}`,
    `maxmemory ${settings.maxMemoryBytes}`,
    'maxmemory-policy noeviction',
    'save ""',
    `appendonly ${settings.persistent ? 'yes' : 'no'}`,
    'appendfsync everysec',
    'daemonize no',
    'logfile ""',
  ];
  return `${lines.join('\n')}\n`;
}

/** Parses port and password of an earlier configuration, so that a restarted Redis keeps its address. */
export function parseRedisConfig(text: string): RedisConfig | undefined {
  const port = Number(/^port (\d+)$/m.exec(text)?.[1]);
  const password = /^requirepass (\S+)$/m.exec(text)?.[1];
  return port > 0 && password ? { port, password } : undefined;
}

/** Returns the address of the last start if its port is free, else a new random one. */
export async function chooseRedisAddress(configPath: string): Promise<RedisConfig> {
  const earlier = parseRedisConfig(await readFile(configPath, 'utf8').catch(() => ''));
  if (earlier && (await findFreePort(earlier.port))) return earlier;
  const port = await findFreePort(0);
  if (port === undefined) throw new Error('No free port on 127.0.0.1 for Redis.');
  return { port, password: randomBytes(24).toString('base64url') };
}

/** Writes the configuration with the password, which a command line would show to every user. */
export function writeRedisConfig(path: string, settings: RedisSettings): Promise<void> {
  return writeFile(path, renderRedisConfig(settings), { mode: 0o600 });
}

export function redisUrl({ port, password }: RedisConfig): string {
  return `redis://:${password}@127.0.0.1:${port}/0`;
}

/** Returns a quarter of the memory that this process may use. */
export function redisMemoryBytes(): number {
  const limit = process.constrainedMemory();
  const memory = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  return Math.floor(memory / 4);
}

function findFreePort(wanted: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined));
    });
  });
}
