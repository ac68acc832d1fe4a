import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Fleet, isShellfleetError } from '@shellfleet/client';

// A back end for browsers. It keeps nothing: runs are in the fleet, and a reader resumes by the id of the last event
// that it received. So a reader may leave and come back, to this process or to another one.
//
//   POST /runs                 body: a script → 201 with the id of the run
//   GET /runs/ID/events        server-sent events: `output` for each piece, then `end`;
//                              `Last-Event-ID` resumes after that event
//   DELETE /runs/ID            cancels the run

export function createBackEnd(fleet: Fleet): Server {
  return createServer((request, response) => {
    answer(fleet, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else sendJson(response, isShellfleetError(error) ? 400 : 500, { error: String(error) });
    });
  });
}

async function answer(fleet: Fleet, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, resource, id = '', part] = (request.url ?? '').split('/').map(decodeURIComponent);
  const what = [request.method, resource, id === '' ? '' : 'ID', part ?? ''].join(' ').trim();
  switch (what) {
    case 'POST runs':
      return start(fleet, request, response);
    case 'GET runs ID events':
      return sendEvents(fleet, id, request, response);
    case 'DELETE runs ID':
      return sendJson(response, 200, { cancelled: await (await fleet.command(id)).cancel('its user') });
    default:
      return sendJson(response, 404, { error: 'There is nothing here.' });
  }
}

/** Starts a run in a new session, which closes itself a minute after the run. */
async function start(fleet: Fleet, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const session = await fleet.session(`run-${crypto.randomUUID()}`, { idleTimeoutMs: 60_000 });
  const command = await session.submit(await text(request));
  sendJson(response, 201, { id: command.id });
}

async function sendEvents(fleet: Fleet, id: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const left = new AbortController();
  response.on('close', () => left.abort());
  const after = request.headers['last-event-id'];
  const command = await fleet.command(id);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }).flushHeaders();
  const send = async (event: string, data: unknown, eventId = '') => {
    const isRoom = response.write(`event: ${event}\n${eventId && `id: ${eventId}\n`}data: ${JSON.stringify(data)}\n\n`);
    // Waits for a slow reader. This delays no other reader, because the output is stored in the fleet.
    if (!isRoom) await once(response, 'drain', { signal: left.signal });
  };
  try {
    const options = { signal: left.signal, ...(typeof after === 'string' ? { after } : {}) };
    for await (const { id, stream, text, omittedBytes } of command.output(options)) {
      await send('output', { stream, text, ...(omittedBytes ? { omittedBytes } : {}) }, id);
    }
    const { outcome, exitCode } = await command.result({ signal: left.signal });
    await send('end', { outcome, exitCode });
  } catch (error) {
    if (left.signal.aborted) return; // the reader has gone
    await send('failed', { error: String(error) });
  }
  response.end();
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}
