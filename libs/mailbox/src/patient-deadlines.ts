import { Cluster, Redis } from 'ioredis';

/** What is used of ioredis' Command, whose own deadline is one timer. */
interface Call {
  isSettled: boolean;
  reject(error: Error): void;
  setTimeout(ms: number): void;
  /** ioredis clears it when the reply comes. */
  _commandTimeoutTimer?: NodeJS.Timeout;
}

const STEPS = 4;

/**
 * Divides the deadline of each call (`commandTimeout`) into steps, of which time that this process is busy counts as one at most. Node runs
 * timers before it reads replies, so after two seconds of work without a pause, calls to a Redis that has answered would fail all the same.
 */
export function usePatientDeadlines(redis: Redis): void {
  redis.sendCommand = (command, ...rest) => {
    const call = command as unknown as Call;
    call.setTimeout = (ms) => {
      if (call._commandTimeoutTimer === undefined) wait(call, ms / STEPS, STEPS);
    };
    // Looked up at each call: instrumentation replaces it on the prototype.
    return Redis.prototype.sendCommand.call(redis, command, ...rest);
  };
}

/**
 * The same for a Cluster, whose own deadline would begin anew with each node that a call is sent to, and not at all while no node is known.
 * A call that has failed is not sent any more.
 */
export function useClusterDeadlines(cluster: Cluster, deadlineMs: number | undefined): void {
  cluster.sendCommand = (command, ...rest) => {
    const call = command as unknown as Call;
    if (call.isSettled) return undefined;
    if (deadlineMs !== undefined && call._commandTimeoutTimer === undefined) wait(call, deadlineMs / STEPS, STEPS);
    return Cluster.prototype.sendCommand.call(cluster, command, ...rest);
  };
  cluster.on('+node', (node: Redis) => {
    usePatientDeadlines(node);
    const send = node.sendCommand;
    node.sendCommand = (command, ...rest) =>
      (command as unknown as Call).isSettled ? undefined : send.call(node, command, ...rest);
  });
}

function wait(call: Call, stepMs: number, steps: number): void {
  call._commandTimeoutTimer = setTimeout(() => {
    if (call.isSettled) return;
    if (steps === 1) call.reject(new Error('Command timed out'));
    else wait(call, stepMs, steps - 1);
  }, stepMs);
}
