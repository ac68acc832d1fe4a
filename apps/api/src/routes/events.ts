import type { Command, Fleet, Session, SessionEvent } from '@shellfleet/client';
import { resultSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { outputDataSchema, toOutputData, toOutputEvent } from '../streams/output-data.ts';
import { type ServerEvent, sendEvents } from '../streams/send-events.ts';
import { SharedEvents } from '../streams/shared-events.ts';
import { requireCommand } from './commands.ts';
import { commandPart, resumingAfter, sessionPart } from './parts.ts';
import { route } from './route.ts';
import { findSession } from './sessions.ts';

/** Id of the last event of a command. */
const END = 'end';
const nothingLeft = { description: 'The client has all events.' };
const ends = new SharedEvents<Fleet>();
const EVENT_STREAM = 'text/event-stream';

const ofCommand = route({
  method: 'GET',
  path: '/commands/{id}/events',
  scope: 'read',
  operationId: 'followCommand',
  summary: 'Streams the output of a command, and its Result',
  description:
    '`command.output` has a piece of the output, `command.completed` the Result; then the stream ends. A client that repeats the request with the id of its last event gets what follows, at any server, and 204 after the end.',
  params: commandPart,
  ...resumingAfter(/^(?:\d{1,16}-\d{1,16}|end)$/),
  replies: {
    200: {
      description: 'The events. The data of `command.output` is OutputData, that of `command.completed` is Result.',
      type: EVENT_STREAM,
      schema: z.union([outputDataSchema, resultSchema]),
    },
    204: nothingLeft,
  },
  async handler(call) {
    const { params, headers, query, fleet, reply } = call;
    const command = await requireCommand(fleet, params.id);
    const from = headers['last-event-id'] ?? query.after;
    if (from === END) return reply.code(204).send();
    return sendEvents(call, (signal) => eventsOf(fleet, command, from, signal));
  },
});

const ofSession = route({
  method: 'GET',
  path: '/sessions/{id}/events',
  scope: 'read',
  operationId: 'followSession',
  summary: 'Streams the events of a session',
  description: 'The stream ends with the session. A client resumes as with the events of a command.',
  params: sessionPart,
  ...resumingAfter(/^\d{1,16}-\d{1,16}$/),
  replies: {
    200: {
      description: 'The events. The data of each is SessionEvent, with the type of the event.',
      type: EVENT_STREAM,
      schema: z
        .object({
          id: z.string(),
          at: z.string().describe('Time of the event.'),
          type: z.string(),
          commandId: z.string().optional(),
          data: z.unknown().describe('By type; of `command.output` OutputData, of `command.completed` Result.'),
        })
        .meta({ id: 'SessionEvent' }),
    },
    204: nothingLeft,
  },
  async handler(call) {
    const { params, headers, query, fleet, reply } = call;
    const session = await findSession(fleet, params.id);
    const from = headers['last-event-id'] ?? query.after;
    if (from !== undefined && (await hasNothingAfter(session, from))) return reply.code(204).send();
    return sendEvents(call, async function* (signal) {
      for await (const event of session.events({ after: from, signal, text: false }))
        yield { id: event.id, type: event.type, data: toData(event) };
    });
  },
});

export const eventRoutes = [ofCommand, ofSession];

async function* eventsOf(
  fleet: Fleet,
  command: Command,
  from: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  for await (const chunk of command.output({ after: from, signal, text: false })) yield toOutputEvent(chunk);
  const result = await command.result({ signal });
  yield ends.share(fleet, command.id, () => ({ id: END, type: 'command.completed', data: result }));
}

/** Tells whether a session is closed, and the event that a client has was the last one. */
async function hasNothingAfter(session: Session, from: string): Promise<boolean> {
  if ((await session.info()).state !== 'closed') return false;
  for await (const _event of session.events({ after: from, follow: false })) return false;
  return true;
}

function toData(event: SessionEvent): unknown {
  return event.type === 'command.output' ? { ...event, data: toOutputData(event.data) } : event;
}
