import { once } from 'node:events';
import type { FastifyReply } from 'fastify';
import { toProblem } from '../problems/to-problem.ts';
import type { Call } from '../routes/route.ts';

// SSE-1. An event is written whole, with its id, so that a client that resumes after the last id misses no event and
//     gets none twice.
// SSE-2. The next event is read from the fleet when the client has taken the one before: a slow client costs no memory.
// SSE-3. Streams that send the same output have the same event object, whose bytes are made once and held once.
// SSE-4. All streams of a server share one timer for the lines that keep connections open.

/** One event of a stream. Nobody changes an event: several streams may send the same object. */
export interface ServerEvent {
  /** Id after which a client resumes. Absent: the client resumes after the event before. */
  id?: string | undefined;
  type: string;
  data: unknown;
}

const HEADERS = {
  'content-type': 'text/event-stream',
  // Tells proxies such as nginx to pass each event on at once.
  'x-accel-buffering': 'no',
};
/** Time after which a client connects again. */
const RETRY_MS = 1_000;
const KEEP_ALIVE = ': keep-alive\n\n';

/** Sends events until they end, the client leaves, its key stops working, or the server stops. */
export async function sendEvents(
  { reply, beginWork }: Pick<Call, 'reply' | 'beginWork'>,
  read: (signal: AbortSignal) => AsyncIterable<ServerEvent>,
): Promise<FastifyReply> {
  using work = beginWork();
  const { raw } = reply.hijack();
  raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...HEADERS });
  raw.write(`retry: ${RETRY_MS}\n\n`);
  work.onKeepAlive(() => {
    if (!raw.writableNeedDrain) raw.write(KEEP_ALIVE);
  });
  try {
    for await (const event of read(work.signal))
      if (!raw.write(encodeOnce(event))) await once(raw, 'drain', { signal: work.signal });
  } catch (error) {
    if (!work.signal.aborted) raw.write(toText({ type: 'problem', data: toProblem(error).body }));
  }
  raw.end();
  return reply;
}

const encoded = new WeakMap<ServerEvent, Buffer>();

/** Encodes an event, once for all streams that send it. */
function encodeOnce(event: ServerEvent): Buffer {
  const bytes = encoded.get(event) ?? Buffer.from(toText(event));
  encoded.set(event, bytes);
  return bytes;
}

function toText({ id, type, data }: ServerEvent): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
