import { Readable } from 'node:stream';
import type { Command, Fleet } from '@shellfleet/client';
import { idempotencyKeySchema, isShellfleetError, resultSchema, STREAM_NAMES } from '@shellfleet/protocol';
import { z } from 'zod';
import { HttpProblem } from '../problems/http-problem.ts';
import { acceptedSchema, commandBodySchema, commandInfoSchema, toStdin } from '../schemas/command.ts';
import { readBody } from '../streams/read-body.ts';
import { waitWithin } from '../streams/wait-within.ts';
import { commandPart, flag, prefer, sessionPart } from './parts.ts';
import { type Call, route } from './route.ts';

const PREFERENCE_APPLIED = { 'preference-applied': 'Given if the server waited.' };

/** The key of `Idempotency-Key`, which makes it safe to repeat a request. */
export const keyHeader = idempotencyKeySchema
  .optional()
  .meta({ description: 'A second request with this key and the same body gets the command of the first.' });

const submit = route({
  method: 'POST',
  path: '/sessions/{id}/commands',
  scope: 'submit',
  operationId: 'submitCommand',
  summary: 'Submits a command to a session',
  description:
    'The session is opened with `spec`, or with defaults, if it is not open. Commands run in the order of acceptance.',
  params: sessionPart,
  headers: { prefer, 'idempotency-key': keyHeader },
  body: commandBodySchema,
  replies: {
    200: {
      description: 'The command has ended while the server waited.',
      schema: resultSchema,
      headers: PREFERENCE_APPLIED,
    },
    202: {
      description: 'The command was accepted.',
      schema: acceptedSchema,
      headers: { location: 'Path of the command.', ...PREFERENCE_APPLIED },
    },
  },
  async handler(call) {
    const { params, headers, body, fleet, reply } = call;
    const { script, spec, stdin, ...options } = body;
    const session = await fleet.session(params.id, spec);
    const key = headers['idempotency-key'];
    const command = await session.submit(script, { ...options, stdin: toStdin(stdin), idempotencyKey: key });
    reply.header('location', `/v1/commands/${command.id}`);
    const result = await resultWithin(call, command, headers.prefer);
    if (result !== undefined) return result;
    reply.code(202);
    return { id: command.id, sessionId: command.sessionId, deduplicated: command.deduplicated };
  },
});

const get = route({
  method: 'GET',
  path: '/commands/{id}',
  scope: 'read',
  operationId: 'getCommand',
  summary: 'Returns the state of a command, and its Result if it has ended',
  params: commandPart,
  headers: { prefer },
  replies: { 200: { description: 'The command.', schema: commandInfoSchema, headers: PREFERENCE_APPLIED } },
  async handler(call) {
    const command = await requireCommand(call.fleet, call.params.id);
    await resultWithin(call, command, call.headers.prefer);
    return command.info();
  },
});

const cancel = route({
  method: 'POST',
  path: '/commands/{id}/cancel',
  scope: 'submit',
  operationId: 'cancelCommand',
  summary: 'Cancels a command',
  params: commandPart,
  body: z.strictObject({ reason: z.string().max(1_024).optional().describe('Why, for the Result.') }),
  bodyOptional: true,
  replies: {
    200: {
      description: 'Whether it ends as a cancellation. False if it had ended before.',
      schema: z.object({ cancelled: z.boolean() }),
    },
  },
  async handler({ params, body, fleet }) {
    return { cancelled: await (await requireCommand(fleet, params.id)).cancel(body?.reason) };
  },
});

const writeStdin = route({
  method: 'POST',
  path: '/commands/{id}/stdin',
  scope: 'submit',
  operationId: 'writeStdin',
  summary: 'Writes the body to the stdin of a command',
  description:
    'For commands with `stdin: { open: true }`, also before their start. The body is passed on while it arrives, and waits while the command reads nothing. A request that breaks off has written a part of its body.',
  params: commandPart,
  query: { end: flag('Closes the stdin after the body.') },
  body: 'bytes',
  replies: { 204: { description: 'Everything was written.' } },
  async handler({ params, query, fleet, request, beginWork }) {
    const command = await requireCommand(fleet, params.id);
    // Nobody knows how much of its body a request that ends early has written.
    using work = beginWork({ goesOn: true });
    for await (const bytes of readBody(request.raw, work.signal)) await command.write(bytes, { signal: work.signal });
    if (query.end) await command.closeStdin();
  },
});

const log = route({
  method: 'GET',
  path: '/commands/{id}/log',
  scope: 'read',
  operationId: 'readLog',
  summary: 'Returns the whole redacted log of a command',
  description: 'The trailer `Omitted-Bytes` counts bytes that no longer exist.',
  params: commandPart,
  query: {
    stream: z.enum(STREAM_NAMES).optional().describe('Only this output stream.'),
    from: z.coerce.number().int().min(0).default(0).describe('Bytes to skip.'),
  },
  replies: { 200: { description: 'The log.', type: 'application/octet-stream' } },
  async handler({ params, query, fleet, reply, beginWork }) {
    const command = await requireCommand(fleet, params.id);
    const work = beginWork();
    const chunks = command.log({ stream: query.stream, offset: query.from, signal: work.signal });
    // The first piece is read before the reply begins, so that an error still has a status.
    const first = await chunks.next().catch((error: unknown) => {
      work[Symbol.dispose]();
      throw error;
    });
    let omitted = 0;
    const bytes = async function* () {
      using _work = work;
      for (let step = first; step.done !== true; step = await chunks.next()) {
        omitted += step.value.omittedBytes ?? 0;
        if (step.value.data.byteLength > 0) yield step.value.data;
      }
    };
    reply.trailer('omitted-bytes', async () => String(omitted));
    return reply.type('application/octet-stream').send(Readable.from(bytes(), { objectMode: false }));
  },
});

export const commandRoutes = [submit, get, cancel, writeStdin, log];

/** Finds a command of the tenant. Throws RESULT_EXPIRED (404): what has expired cannot be told from what never was. */
export async function requireCommand(fleet: Fleet, id: string): Promise<Command> {
  try {
    return await fleet.command(id);
  } catch (error) {
    if (!isShellfleetError(error) || error.code !== 'RESULT_EXPIRED') throw error;
    throw new HttpProblem(404, 'RESULT_EXPIRED', error.message, { context: { ...error.context } });
  }
}

/** Waits for the Result if the client prefers that. Returns undefined if the command has not ended by then. */
async function resultWithin(
  { reply, beginWork }: Pick<Call, 'reply' | 'beginWork'>,
  command: Command,
  waitMs?: number,
) {
  if (waitMs === undefined) return undefined;
  reply.header('preference-applied', `wait=${waitMs / 1_000}`);
  return waitWithin({ beginWork }, waitMs, (signal) => command.result({ signal }));
}
