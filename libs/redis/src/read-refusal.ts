import { connect } from 'node:net';

const WITHIN_MS = 1_000;

/**
 * The error that a server sends to a client before it closes the connection: Redis in protected mode, or with too many clients. ioredis does
 * not report it. Undefined when there is none.
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
