import type { IncomingMessage, ServerResponse } from 'node:http';

/** Time for which a client may go on to send a body after its reply. */
const LINGER_MS = 5_000;

/**
 * Closes the connection of a client that still sends its body some time after the reply. Otherwise a client without a
 * key could hold a connection for any time, and a body that a handler has left unread would block its connection. A
 * client that is closed at once might not get the reply.
 */
export function endUnreadBody(request: IncomingMessage, response: ServerResponse, lingerMs = LINGER_MS): void {
  // A handler that stops to read a body takes the socket from the request.
  const { socket } = request;
  response.once('finish', () => {
    if (request.complete) return;
    setTimeout(() => {
      if (!request.complete) socket.destroy();
    }, lingerMs).unref();
  });
}
