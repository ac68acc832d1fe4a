import { z } from 'zod';
import { HttpProblem } from '../problems/http-problem.ts';
import { serveTerminal } from '../terminals/serve-terminal.ts';
import { sessionPart } from './parts.ts';
import { route } from './route.ts';

const size = z.coerce.number().int().min(1).max(10_000).optional();

const terminal = route({
  method: 'GET',
  path: '/sessions/{id}/terminal',
  scope: 'submit',
  operationId: 'openTerminal',
  summary: 'Opens a terminal in a session, by a WebSocket',
  description:
    'The subprotocol is `shellfleet.terminal.v1`. Binary messages are bytes; text messages are JSON: `{"resize":{"columns":80,"rows":24}}`, `{"end":true}`, and `{"ended":…}` or `{"problem":…}` of the server. A browser, which sets no headers, gives its key as a further subprotocol `shellfleet.bearer.<key>`. The server closes with 1012 when it stops: connect again.',
  params: sessionPart,
  query: {
    columns: size.describe('Width in characters. Default: 80.'),
    rows: size.describe('Height in characters. Default: 24.'),
    term: z.string().max(64).optional().describe('`TERM` of the programs. Default: xterm-256color.'),
  },
  replies: { 101: { description: 'The connection is a WebSocket from here on.' } },
  problems: [426],
  async handler() {
    const message = 'Connect to this path with a WebSocket of the subprotocol shellfleet.terminal.v1.';
    throw new HttpProblem(426, 'COMMAND_INVALID', message, { headers: { upgrade: 'websocket' } });
  },
  async socket({ params, query: { columns, rows, term }, openFleet, socket, work }) {
    await serveTerminal(socket, work, async (signal) => {
      const session = await (await openFleet()).session(params.id);
      return session.attach({ cols: columns, rows, term, signal });
    });
  },
});

export const terminalRoutes = [terminal];
