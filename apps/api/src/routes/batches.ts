import { Readable } from 'node:stream';
import { detachedBatchSchema, type SubmitOptions, type Task, taskResultReplySchema } from '@shellfleet/client';
import { ShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { flag, page, pageOf, toPage } from './parts.ts';
import { route } from './route.ts';

const count = z.number().int();
const part = { name: z.string().min(1).max(64).describe('Name of the batch.') };
/** Most bytes of a batch, which is one body. */
const BATCH_BYTES = 32 * 2 ** 20;

/** Options of a batch. The SDK checks their limits. */
const optionsSchema = z.strictObject({
  concurrency: count.optional().describe('Tasks that run at a time.'),
  repeats: count.optional().describe('How often each task is run.'),
  retries: z.strictObject({ infra: count.optional(), command: count.optional() }).optional(),
  spec: sessionSpecSchema.optional().describe('Spec that the tasks share.'),
  timeoutMs: count.optional().describe('Limit for scripts of tasks without one.'),
  startDeadlineMs: count.optional(),
  taskDeadlineMs: count.optional(),
  deadlineMs: count.optional().describe('Limit for the whole batch.'),
  stopOnFailure: z.boolean().optional(),
}) satisfies z.ZodType<SubmitOptions, SubmitOptions>;

const bodySchema = z
  .strictObject({
    name: z.string().optional().describe('Name, unique in the tenant. Default: one is made.'),
    tasks: z.array(z.looseObject({ id: z.string() })).describe('The tasks, as Task of the SDK, without `files`.'),
    options: optionsSchema.optional(),
  })
  .meta({ id: 'BatchRequest' });

const submit = route({
  method: 'POST',
  path: '/batches',
  scope: 'submit',
  operationId: 'submitBatch',
  summary: 'Submits a batch, which workers of the fleet drive',
  description:
    'Submitting the same batch again under its name has no effect. Tasks have no `files`: those are paths of the machine that submits; let `setup` fetch them, or write them into a session.',
  body: bodySchema,
  bodyLimit: BATCH_BYTES,
  replies: {
    202: { description: 'The batch is stored.', schema: detachedBatchSchema, headers: { location: 'Its path.' } },
  },
  async handler({ body: { name, tasks, options }, fleet, reply }) {
    refuseFiles(tasks);
    const batch = await fleet.batches.submit(tasks as unknown as Task[], {
      ...options,
      ...(name === undefined ? {} : { name }),
    });
    reply.code(202).header('location', `/v1/batches/${batch.name}`);
    return batch;
  },
});

const list = route({
  method: 'GET',
  path: '/batches',
  scope: 'read',
  operationId: 'listBatches',
  summary: 'Lists the batches of the tenant, in the order of their names',
  query: page,
  replies: { 200: { description: 'One page of batches.', schema: pageOf(detachedBatchSchema) } },
  async handler({ query, fleet }) {
    const all = (await fleet.batches.list()).sort((a, b) => (a.name < b.name ? -1 : 1));
    return toPage(
      query,
      (after) => all.filter(({ name }) => name > after),
      ({ name }) => name,
    );
  },
});

const get = route({
  method: 'GET',
  path: '/batches/{name}',
  scope: 'read',
  operationId: 'getBatch',
  summary: 'Returns how far a batch is',
  params: part,
  replies: { 200: { description: 'The batch.', schema: detachedBatchSchema } },
  async handler({ params, fleet }) {
    return fleet.batches.get(params.name);
  },
});

const results = route({
  method: 'GET',
  path: '/batches/{name}/results',
  scope: 'read',
  operationId: 'readBatchResults',
  summary: 'Returns the results of a batch, one line of JSON each',
  params: part,
  query: { follow: flag('Waits for later results, until the batch has ended.') },
  replies: {
    200: { description: 'The results.', type: 'application/x-ndjson', schema: taskResultReplySchema },
  },
  async handler({ params, query, fleet, reply, beginWork }) {
    // A batch that is not there has a status, which a reply that has begun has not.
    await fleet.batches.get(params.name);
    const lines = async function* () {
      using work = beginWork();
      for await (const result of fleet.batches.attach(params.name, { follow: query.follow, signal: work.signal }))
        yield `${JSON.stringify(result)}\n`;
    };
    return reply.type('application/x-ndjson').send(Readable.from(lines(), { objectMode: false }));
  },
});

const cancel = route({
  method: 'POST',
  path: '/batches/{name}/cancel',
  scope: 'submit',
  operationId: 'cancelBatch',
  summary: 'Ends a batch: running tasks end as cancellations',
  params: part,
  replies: {
    200: { description: 'False if it had ended before.', schema: z.object({ cancelled: z.boolean() }) },
  },
  async handler({ params, fleet }) {
    return { cancelled: await fleet.batches.cancel(params.name) };
  },
});

const remove = route({
  method: 'DELETE',
  path: '/batches/{name}',
  scope: 'submit',
  operationId: 'removeBatch',
  summary: 'Removes a batch that has ended, with its results',
  params: part,
  replies: { 204: { description: 'The batch is removed.' } },
  async handler({ params, fleet }) {
    await fleet.batches.remove(params.name);
  },
});

export const batchRoutes = [submit, list, get, results, cancel, remove];

/** Throws COMMAND_INVALID for a task with files: their paths would be those of this server. */
function refuseFiles(tasks: readonly Record<string, unknown>[]): void {
  const at = tasks.findIndex(({ files }) => files !== undefined);
  if (at < 0) return;
  const message = 'names paths of the machine that submits, and this API has no access to those of its client';
  throw new ShellfleetError('COMMAND_INVALID', `Nothing was submitted: tasks.${at}.files ${message}.`, {
    issues: [{ path: `tasks.${at}.files`, message }],
  });
}
