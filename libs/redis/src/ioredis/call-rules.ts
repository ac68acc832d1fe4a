import { Socket } from 'node:net';
import { Cluster, Redis } from 'ioredis';

// CALL-1. A failed call is never sent later, also not from the queues of ioredis after a reconnection.
// CALL-2. A call without a reply within its deadline ends its connection, and unsent data is discarded.
// CALL-3. The deadline does not count time in which this process is busy (see CallDeadlines).
// CALL-4. The error of a call does not carry its arguments: those of AUTH are the password.
// CALL-5. A reconnection whose SELECT or SUBSCRIBE fails breaks again. ioredis leaves that failure unhandled.

/** The fields of ioredis' Command that the rules use. */
interface Call {
  name: string;
  promise: Promise<unknown>;
  isSettled: boolean;
  reject(error: Error): void;
  setTimeout(ms: number): void;
  sentOn?: Socket | undefined;
}

/** Time within which Redis must reply to a call. */
export const REDIS_DEADLINE_MS = 2_000;

export function applyCallRules(redis: Redis): void {
  const deadlines = newDeadlines();
  redis.sendCommand = (command, stream) => {
    const call = command as unknown as Call;
    if (call.isSettled) return command.promise;
    prepare(call, deadlines);
    call.sentOn = streamOf(redis);
    // The function is looked up at each call, because instrumentation replaces it on the prototype.
    return Redis.prototype.sendCommand.call(redis, command, stream);
  };
}

/**
 * Applies the rules to a Cluster. ioredis' own deadline is not used: it restarts with each node, and never ends without
 * a known node.
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
  // ioredis sends a command from its queues a second time. The rules already apply to that command.
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

/** Resets the connection, so that the kernel drops unsent data. After a plain close it would still deliver them. */
function discard(stream: Socket | undefined): void {
  if (stream === undefined || stream.destroyed) return;
  // Only TLS sockets have `encrypted`. A check by their class would need an import that takes 10 ms.
  if ('encrypted' in stream || stream.connecting) stream.destroy();
  else stream.resetAndDestroy();
}

/** The part of an ioredis command that the deadlines need. */
export interface WaitingCall {
  isSettled: boolean;
}

/** Interval of the timer. A longer pause of this process still counts as one interval. */
const STEP_MS = 100;

/**
 * Deadlines of the calls on one connection. They count only time in which this process could have read replies. Node
 * runs timers before it reads, so after a busy second a timer per call would fail calls that Redis has answered.
 */
export class CallDeadlines<Call extends WaitingCall> {
  readonly #onLate: (call: Call) => void;
  /** Calls in the order in which they began. */
  #waiting: { call: Call; until: number }[] = [];
  #steps = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(onLate: (call: Call) => void) {
    this.#onLate = onLate;
  }

  begin(call: Call, ms: number): void {
    // Replies come in call order, so settled calls are nearly always at the front.
    while (this.#waiting[0]?.call.isSettled) this.#waiting.shift();
    this.#waiting.push({ call, until: this.#steps + Math.ceil(ms / STEP_MS) + 1 });
    this.#timer ??= setInterval(() => this.#step(), STEP_MS).unref();
  }

  #step(): void {
    this.#steps += 1;
    const waiting = this.#waiting.filter(({ call }) => !call.isSettled);
    this.#waiting = waiting.filter(({ until }) => until > this.#steps);
    for (const { call, until } of waiting) if (until <= this.#steps) this.#onLate(call);
    if (this.#waiting.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
