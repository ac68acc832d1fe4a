import { Redis } from 'ioredis';

/** Calls `listener` with each reply to INFO on this connection. ioredis sends one before a connection is ready. */
export function onInfo(redis: Redis, listener: (reply: string) => void): void {
  const record = (reply: unknown) => {
    if (typeof reply === 'string') listener(reply);
  };
  const sendCommand = Object.hasOwn(redis, 'sendCommand') ? redis.sendCommand : undefined;
  redis.sendCommand = (command, stream) => {
    if (command.name === 'info') void command.promise.then(record, () => {});
    // Looked up at each call, because instrumentation replaces it on the prototype.
    return (sendCommand ?? Redis.prototype.sendCommand).call(redis, command, stream);
  };
}
