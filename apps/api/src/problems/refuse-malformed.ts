import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { SAFE_HEADERS } from '../guards/headers.ts';
import { HttpProblem } from './http-problem.ts';
import { PROBLEM_TYPE, toProblem } from './to-problem.ts';

const REFUSALS: Partial<Record<string, [status: number, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The headers of the request did not arrive in time. Repeat it.'],
  HPE_HEADER_OVERFLOW: [431, 'The headers of the request are too large. Send smaller ones.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The extensions of a chunk of the body are too large. Send none.'],
};
const NO_HTTP: [number, string] = [400, 'What arrived is not a valid request of HTTP/1.1.'];

/** Replies to bytes that are no request, and closes their connection. `begun` is the last reply of the connection. */
export function refuseMalformed(
  error: NodeJS.ErrnoException,
  socket: Socket,
  begun: Pick<ServerResponse, 'headersSent' | 'writableFinished'> | undefined,
): void {
  // A reply in the middle of another one would look like a part of it.
  const isInMiddle = begun?.headersSent && !begun.writableFinished;
  if (socket.writable && error.code !== 'ECONNRESET' && !isInMiddle) {
    const [status, message] = REFUSALS[error.code ?? ''] ?? NO_HTTP;
    const body = JSON.stringify(toProblem(new HttpProblem(status, 'COMMAND_INVALID', message)).body);
    const headers = {
      ...SAFE_HEADERS,
      ...{ 'content-type': PROBLEM_TYPE, 'content-length': Buffer.byteLength(body), connection: 'close' },
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  }
  socket.destroy(error);
}
