import { type Job, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import {
  BULLMQ_INBOX,
  bellOf,
  COMMANDS,
  createSharedBackend,
  ONE_QUEUE,
  prefixOf,
  SESSIONS,
  SESSIONS_PREFIX,
} from './bullmq-queues.ts';
import { noopResult } from './noop-result.ts';

const redisUrl = process.env.BENCH_REDIS_URL;
const hostId = 'bench-host';
const leaseMs = 5_000;
const neverRenewedMs = 86_400_000;

type Command = { id: string; output: string };
type Served = { id: string; worker: Worker; token: string; busy: boolean; again: boolean };

const connect = (): Redis => new Redis(redisUrl!, { maxRetriesPerRequest: null });
const redis = connect();
const subscriber = connect();
const backend = createSharedBackend(redis);
const served = new Map<string, Served>();

const single = new Worker(
  ONE_QUEUE,
  async (job: Job<Command>) => void redis.xadd(BULLMQ_INBOX, ...inboxEntry(job.data)),
  { connection: redis },
);
const placement = new Worker(SESSIONS, null, {
  connection: redis,
  prefix: SESSIONS_PREFIX,
  autorun: false,
  lockDuration: leaseMs,
  stalledInterval: 1_000,
  maxStalledCount: 1_000_000,
  drainDelay: 2,
  name: hostId,
});
for (const worker of [single, placement]) worker.on('error', () => {});
await Promise.all([single.waitUntilReady(), placement.waitUntilReady()]);
await placement.startStalledCheckTimer();
subscriber.on('message', (channel) => {
  const session = served.get(channel.slice(bellOf('').length));
  if (session) ring(session);
});
setInterval(() => {
  const ids = [...served.keys()];
  if (ids.length > 0)
    void placement.extendJobLocks(
      ids,
      ids.map(() => hostId),
      leaseMs,
    );
}, leaseMs / 3);
process.on('disconnect', () => process.exit()); // the bench is gone
process.send?.('ready');

for (;;) {
  const job = await placement.getNextJob(hostId, { block: true });
  if (job?.id !== undefined) void serve(job.id);
}

async function serve(id: string): Promise<void> {
  const options = { connection: redis, prefix: prefixOf(id), skipMetasUpdate: true };
  await new Queue(COMMANDS, options, backend).setGlobalConcurrency(1);
  const worker = new Worker(
    COMMANDS,
    null,
    {
      connection: redis,
      prefix: prefixOf(id),
      autorun: false,
      lockDuration: neverRenewedMs,
      skipStalledCheck: true,
      skipLockRenewal: true,
    },
    backend,
  );
  const session = { id, worker, token: `${hostId}:${id}`, busy: false, again: false };
  served.set(id, session);
  await subscriber.subscribe(bellOf(id));
  ring(session);
}

function ring(session: Served): void {
  session.again = session.busy;
  if (session.busy) return;
  session.busy = true;
  void drain(session).finally(() => {
    session.busy = false;
    if (session.again) ring(session);
  });
}

/** Runs one command after the other: start mark, result, then complete and take the next. */
async function drain({ id, worker, token }: Served): Promise<void> {
  const stream = `${prefixOf(id)}:out`;
  let job = (await worker.getNextJob(token, { block: false })) as Job<Command> | undefined;
  while (job?.id !== undefined) {
    await redis.xadd(stream, 'MAXLEN', '~', 1_000, '*', 't', 's', 'j', job.id, 'd', '');
    const result = noopResult(job.data.output);
    const told = redis
      .pipeline()
      .xadd(stream, 'MAXLEN', '~', 1_000, '*', 't', 'r', 'j', job.id, 'd', result)
      .xadd(BULLMQ_INBOX, ...inboxEntry(job.data))
      .exec();
    const next = (await job.moveToCompleted(1, token, true)) as [object, string] | undefined;
    await told;
    // createJob is protected. Nothing else turns the reply of moveToCompleted into the next Job.
    const factory = worker as unknown as { createJob(data: object, id: string): Job<Command> };
    job = next?.[0] ? factory.createJob(next[0], next[1]) : undefined;
  }
}

function inboxEntry({ id, output }: Command) {
  return ['MAXLEN', '~', 10_000, '*', 'id', id, 'd', noopResult(output)] as const;
}
