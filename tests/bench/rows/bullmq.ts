import { Job, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import {
  BULLMQ_INBOX,
  bellOf,
  createSharedBackend,
  ONE_QUEUE,
  openCommandQueue,
  SESSIONS,
  SESSIONS_PREFIX,
} from './bullmq-queues.ts';
import { startHostProcess } from './host-process.ts';
import { Inbox } from './inbox.ts';
import { expectOutput, outputOf, type Row, type Script } from './row.ts';

const removed = { removeOnComplete: true, removeOnFail: true };

/**
 * The row of BullMQ without a shell. Commands one at a time use one queue, one Worker, and a stream of the bench for
 * results. A load uses what a service with sessions on BullMQ alone would use: one queue per session on a shared
 * connection, a job with a lease per session, start marks and results in the session's stream, wake-ups and an inbox.
 * The processor time of Redis per command under a load is compared with that of Shellfleet.
 */
export async function createBullmqRow(redisUrl: string): Promise<Row> {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const inbox = new Inbox(redisUrl, BULLMQ_INBOX);
  const host = await startHostProcess('./bullmq-host.ts', redisUrl);
  const single = new Queue(ONE_QUEUE, { connection: redis, defaultJobOptions: removed });
  const sessions = new Queue(SESSIONS, { connection: redis, prefix: SESSIONS_PREFIX, defaultJobOptions: removed });
  await Promise.all([single.waitUntilReady(), sessions.waitUntilReady()]);
  const backend = createSharedBackend(redis);
  const queues = new Map<string, Queue>();
  const opened = new Set<string>();

  const queueOf = (session: string): Queue => {
    const known = queues.get(session) ?? openCommandQueue(redis, session, backend);
    queues.set(session, known);
    return known;
  };
  const runIn = async (session: string, script: Script): Promise<void> => {
    const { id, result } = inbox.expect();
    const isOpen = await addInOneTrip(session, { id, output: outputOf(script) });
    if (isOpen === 0 && !opened.has(session)) {
      opened.add(session);
      await sessions.add('session', {}, { jobId: session });
    }
    expectOutput(JSON.parse(await result).stdout, script);
  };

  /**
   * Adds the job, sends the wake-up and reads whether the session has a host in one round trip, like BullMQ's own bulk
   * calls.
   */
  const addInOneTrip = async (session: string, data: object): Promise<unknown> => {
    const queue = queueOf(session);
    const client = await queue.getBackend().connection.client;
    const transaction = client.pipeline();
    const job = new Job(queue, 'c', data, removed);
    queue.getBackend().addJobToTransaction(transaction, job.asJSON(), undefined as never, {});
    transaction.runCommand('publish', [bellOf(session), '1']);
    transaction.runCommand('exists', [`${SESSIONS_PREFIX}:${SESSIONS}:${session}`]);
    const replies = (await transaction.exec()) ?? [];
    const failure = replies.find(([error]) => error !== null)?.[0];
    if (failure) throw failure;
    return replies[2]?.[1];
  };

  return {
    name: 'bullmq',
    workerPid: host.pid,
    async one(script) {
      const { id, result } = inbox.expect();
      await single.add('c', { id, output: outputOf(script) });
      expectOutput(JSON.parse(await result).stdout, script);
    },
    async many(count, perSession) {
      const names = Array.from({ length: count }, (_, index) => `s${index}`);
      const turns = Array.from({ length: perSession }, () => names).flat();
      await Promise.all(turns.map((session) => runIn(session, 'echo hi')));
    },
    async close() {
      await host.close();
      inbox.close();
      redis.disconnect();
    },
  };
}
