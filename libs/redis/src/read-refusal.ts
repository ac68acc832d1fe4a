import { connect } from 'node:net';

const WITHIN_MS = 1_000;

/**
 * Reads the error with which a server closes a new connection, for example because of maxclients. ioredis does not
 * report this error.
 */
export async function readRefusal({ host, port }: { host: string; port: number }): Promise<string | undefined> {
  const socket = connect({ host, port, timeout: WITHIN_MS });
  try {
    for await (const bytes of socket.on('timeout', () => socket.destroy())) {
      const [line = ''] = String(bytes).split('\r\n');
      return line.startsWith('-') ? line.slice(1) : undefined;
    }
    return undefined;
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}
