import { randomUUID } from 'node:crypto';
import { abortable } from '@shellfleet/concurrency';
import { resultSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { commandBodySchema, toStdin } from '../schemas/command.ts';
import { waitWithin } from '../streams/wait-within.ts';
import { keyHeader } from './commands.ts';
import { prefer } from './parts.ts';
import { route } from './route.ts';

const USUAL_WAIT_MS = 30_000;
const KEY = { 'idempotency-key': 'The key of the run, which the server makes if the request has none.' };

const run = route({
  method: 'POST',
  path: '/run',
  scope: 'submit',
  operationId: 'run',
  summary: 'Runs one command in a session of its own, which is closed afterwards',
  description:
    'Waits up to 30 s, or as long as `Prefer` asks for. Then the same request with the returned `Idempotency-Key` waits again.',
  headers: { prefer, 'idempotency-key': keyHeader },
  body: commandBodySchema,
  replies: {
    200: { description: 'The command has ended.', schema: resultSchema, headers: KEY },
    202: {
      description: 'The command has not ended yet.',
      schema: z.object({ idempotencyKey: z.string() }).meta({ id: 'UnfinishedRun' }),
      headers: { ...KEY, 'retry-after': 'Seconds after which to repeat the request.' },
    },
  },
  async handler(call) {
    const { headers, body, fleet, reply, keepFleetFor } = call;
    const { script, spec, stdin, ...options } = body;
    const key = headers['idempotency-key'] ?? randomUUID();
    reply.header('idempotency-key', key);
    // The run goes on without its client, who repeats the request. A signal would end it.
    const running = fleet.run(script, { ...options, stdin: toStdin(stdin), idempotencyKey: key, spec });
    keepFleetFor(running);
    const result = await waitWithin(call, headers.prefer ?? USUAL_WAIT_MS, (signal) => abortable(running, signal));
    if (result !== undefined) return result;
    reply.code(202).header('retry-after', '1');
    return { idempotencyKey: key };
  },
});

export const runRoutes = [run];
