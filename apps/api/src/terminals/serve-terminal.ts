import { once } from 'node:events';
import type { Terminal } from '@shellfleet/client';
import type { WebSocket } from 'ws';
import { toProblem } from '../problems/to-problem.ts';
import type { Work } from '../streams/open-work.ts';
import { CLOSE_CODES, closeCodeOf } from './close-codes.ts';
import { SocketInput } from './socket-input.ts';

// WS-1. Binary messages are bytes: those of the client are typed, those of the server are output. Text messages are
//     JSON: `{resize}` and `{end}` of the client, `{ended}` and `{problem}` of the server.
// WS-2. Output is read from the terminal when the client has taken what came before, and input from the client when the
//     terminal has taken what came before. So a slow side costs no memory.
// WS-3. The connection ends within a second after its key is revoked. When the server stops, the client is told to
//     connect again. Both hang the terminal up, as the client's leaving does.

/** Connects a terminal, once it is open, to its client, until one of them ends. */
export async function serveTerminal(
  socket: WebSocket,
  work: Work,
  open: (signal: AbortSignal) => Promise<Terminal>,
): Promise<void> {
  const { signal } = work;
  const input = new SocketInput(socket);
  signal.addEventListener('abort', () => closeWith(socket, signal.reason), { once: true });
  keepAlive(socket, work);
  try {
    await using terminal = await open(signal);
    input.start(terminal);
    for await (const bytes of terminal.output()) await send(socket, bytes);
    await send(socket, JSON.stringify({ ended: await terminal.ended }));
    socket.close(CLOSE_CODES.ended);
  } catch (error) {
    if (!signal.aborted) await send(socket, JSON.stringify({ problem: toProblem(error).body }));
    closeWith(socket, error);
  }
  if (socket.readyState !== socket.CLOSED) await once(socket, 'close');
}

/** Ends the connection of a client that does not reply from one keep-alive to the next. */
function keepAlive(socket: WebSocket, work: Work): void {
  let isAlive = true;
  socket.on('pong', () => {
    isAlive = true;
  });
  work.onKeepAlive(() => {
    if (!isAlive) return socket.terminate();
    isAlive = false;
    socket.ping();
  });
}

/** Sends a message. Resolves when the client's connection has taken it, or is closed. */
function send(socket: WebSocket, message: Uint8Array | string): Promise<void> {
  return new Promise((resolve) => {
    socket.send(message, { binary: typeof message !== 'string' }, () => resolve());
  });
}

function closeWith(socket: WebSocket, error: unknown): void {
  const { code, reason } = closeCodeOf(error);
  socket.close(code, reason);
}
