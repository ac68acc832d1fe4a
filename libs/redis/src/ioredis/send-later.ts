import type { Redis } from 'ioredis';

const waiting = new WeakMap<Redis, (() => void)[]>();

/**
 * Calls `send` at the end of this turn of the event loop, or earlier: before the next command on this connection. So
 * what it sends stays before all later commands.
 */
export function sendLater(redis: Redis, send: () => void): void {
  const sends = waiting.get(redis) ?? watch(redis);
  if (sends.length === 0) process.nextTick(sendAll, sends);
  sends.push(send);
}

/** Sends what `sendLater` keeps. */
export function sendNow(redis: Redis): void {
  const sends = waiting.get(redis);
  if (sends !== undefined) sendAll(sends);
}

function watch(redis: Redis): (() => void)[] {
  const sends: (() => void)[] = [];
  waiting.set(redis, sends);
  const own = Object.hasOwn(redis, 'sendCommand') ? redis.sendCommand : undefined;
  redis.sendCommand = (...command) => {
    sendAll(sends);
    // The function is looked up at each call, because instrumentation replaces it on the prototype.
    return (own ?? (Object.getPrototypeOf(redis) as Redis).sendCommand).apply(redis, command);
  };
  // A Cluster ends the connection to each node by itself, not by a command on the Cluster.
  const { quit } = redis;
  redis.quit = (...callback) => {
    sendAll(sends);
    return quit.apply(redis, callback);
  };
  return sends;
}

function sendAll(sends: (() => void)[]): void {
  if (sends.length > 0) for (const send of sends.splice(0)) send();
}
