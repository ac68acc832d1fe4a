import { Redis } from 'ioredis';
import { scriptNameOf } from '../scripts/script.ts';

export interface CallCounter {
  /** Counts a call by the name of its script or command. */
  called(call: string): void;
  failed(): void;
}

/** Counts the calls on this connection from now on. */
export function countCalls(redis: Redis, counter: CallCounter): void {
  const sendCommand = Object.hasOwn(redis, 'sendCommand') ? redis.sendCommand : undefined;
  redis.sendCommand = (command, ...rest) => {
    const { name, args } = command;
    counter.called(name === 'evalsha' ? (scriptNameOf(String(args[0])) ?? name) : name);
    const { reject } = command;
    command.reject = (error) => {
      counter.failed();
      reject(error);
    };
    return (sendCommand ?? Redis.prototype.sendCommand).call(redis, command, ...rest);
  };
}
