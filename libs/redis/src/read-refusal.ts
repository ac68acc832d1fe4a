import { connect } from 'node:net';

/** Time for the error of a server that refuses every connection. Such a server sends it at once. */
const REFUSES_WITHIN_MS = 300;
const ANSWERS_WITHIN_MS = 1_000;

/** First characters of the replies of Redis, in both versions of its protocol. */
const REPLY = /^[-+:$*_#,(!=%~>]/;

/**
 * Returns why a server closes new connections: the error that it sends, for example because of maxclients, or that it
 * is no Redis. ioredis does not report the first, and the second only if the answer comes before the close.
 */
export async function readRefusal({ host, port }: { host: string; port: number }): Promise<string | undefined> {
  const socket = connect({ host, port, timeout: REFUSES_WITHIN_MS });
  let hasAsked = false;
  socket.on('timeout', () => {
    if (hasAsked) {
      socket.destroy();
      return;
    }
    // Without a question, a server of another protocol sends nothing. A question sent earlier could cost the error: a
    // connection that is closed with unread bytes is reset.
    hasAsked = true;
    socket.setTimeout(ANSWERS_WITHIN_MS).write('PING\r\n');
  });
  try {
    for await (const bytes of socket) {
      const [line = ''] = String(bytes).split('\r\n');
      if (!REPLY.test(line)) return NOT_REDIS;
      return line.startsWith('-') && !hasAsked ? line.slice(1) : undefined;
    }
    return undefined;
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}

/** Reason of a server whose answer is no reply of Redis. */
export const NOT_REDIS = 'the answer is no reply of Redis';
