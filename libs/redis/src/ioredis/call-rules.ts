import { Socket } from 'node:net';
import { Cluster, Redis } from 'ioredis';
import { CallDeadlines } from './call-deadlines.ts';

// What holds for every call on a connection, whichever library makes it.
//
// CALL-1. A call that has failed is not sent any more. ioredis keeps such calls in its queues, and would send them after a reconnection.
// CALL-2. A call without a reply within its deadline ends its connection. Nothing more is written to a Redis that does not answer, and what
//         this process has written and Redis has not received is discarded: it neither piles up here nor arrives late.
// CALL-3. The deadline does not count time in which this process is busy (see CallDeadlines).
// CALL-4. The error of a call does not carry its arguments: those of AUTH are the password.
// CALL-5. After a reconnection ioredis selects the database and subscribes again without handling a failure, which would end the process. The
//         connection breaks then, and becomes ready again.

/** What is used of ioredis' Command. */
interface Call {
  name: string;
  promise: Promise<unknown>;
  isSettled: boolean;
  reject(error: Error): void;
  setTimeout(ms: number): void;
  /** The connection that it was last sent on. */
  sentOn?: Socket | undefined;
}

/** A call to Redis fails when it has no reply within this time. */
export const REDIS_DEADLINE_MS = 2_000;

export function applyCallRules(redis: Redis): void {
  const deadlines = newDeadlines();
  redis.sendCommand = (command, stream) => {
    const call = command as unknown as Call;
    if (call.isSettled) return command.promise;
    prepare(call, deadlines);
    call.sentOn = streamOf(redis);
    // Looked up at each call: instrumentation replaces it on the prototype.
    return Redis.prototype.sendCommand.call(redis, command, stream);
  };
}

/**
 * Applies the rules to a Cluster. ioredis' own deadline would begin again with each node that a call is sent to, and not
 * at all while no node is known.
 */
export function applyClusterCallRules(cluster: Cluster): void {
  const deadlines = newDeadlines();
  cluster.sendCommand = (command, ...rest) => {
    const call = command as unknown as Call;
    if (call.isSettled) return undefined;
    prepare(call, deadlines);
    call.setTimeout(REDIS_DEADLINE_MS);
    return Cluster.prototype.sendCommand.call(cluster, command, ...rest);
  };
  cluster.on('+node', applyCallRules);
}

function newDeadlines(): CallDeadlines<Call> {
  return new CallDeadlines((call) => {
    call.reject(new Error('Command timed out'));
    discard(call.sentOn);
  });
}

function prepare(call: Call, deadlines: CallDeadlines<Call>): void {
  // ioredis sends a command of its queues again.
  if (Object.hasOwn(call, 'setTimeout')) return;
  if (call.name === 'subscribe' || call.name === 'select') call.promise.catch(() => {});
  const { reject } = call;
  call.reject = (error) => {
    if (error instanceof Error && 'command' in error) delete error.command;
    reject(error);
  };
  let hasBegun = false;
  call.setTimeout = (ms) => {
    if (!hasBegun) deadlines.begin(call, ms);
    hasBegun = true;
  };
}

function streamOf(redis: Redis): Socket | undefined {
  const { stream } = redis as unknown as { stream?: unknown };
  return stream instanceof Socket ? stream : undefined;
}

/** With a reset, the kernel drops what it has not delivered. A plain close would go on delivering it. */
function discard(stream: Socket | undefined): void {
  if (stream === undefined || stream.destroyed) return;
  // Of the sockets, those of TLS have `encrypted`. Their module takes 10 ms to load, so it is not named here.
  if ('encrypted' in stream || stream.connecting) stream.destroy();
  else stream.resetAndDestroy();
}
