import { isShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Random } from './random.ts';

/** Stands for the kill of a process between two calls, after which none of its code runs. */
class Crash extends Error {
  override name = 'Crash';
}

export const isCrash = (error: unknown): boolean =>
  error instanceof Crash || (isShellfleetError(error) && error.cause instanceof Crash);

export interface Hostility {
  random: Random;
  /**
   * Probability that the process dies before a call. With the same probability it dies after the call, before it reads
   * the reply.
   */
  crash: number;
  /** Calls whose second arrival is still due. */
  late: (() => Promise<unknown>)[];
  /** Called after every call. */
  look(): Promise<void>;
}

/**
 * Returns a connection on which every script call arrives twice: at the same time, right after, or later, between calls
 * of other processes. The caller receives one of the two replies at random, or a Crash instead.
 */
export function createHostileRedis(redis: Redis, { random, crash, late, look }: Hostility): Redis {
  const evalsha = async (...args: Parameters<Redis['evalsha']>): Promise<unknown> => {
    const send = () => redis.evalsha(...args);
    if (random.chance(crash)) throw new Crash('before the call');
    while (late.length > 0 && random.chance(0.3)) await late.splice(random.below(late.length), 1)[0]?.();
    const how = random.pick(['together', 'after', 'late']);
    const replies = [send()];
    if (how === 'together') replies.push(send());
    await Promise.all(replies);
    if (how === 'after') replies.push(send());
    if (how === 'late') late.push(() => send().catch(ignoreMissingScript));
    await look();
    const reply = await random.pick([replies[0] as Promise<unknown>, replies.at(-1) as Promise<unknown>]);
    if (random.chance(crash)) throw new Crash('after the call');
    if (random.chance(0.1)) return send(); // the reply was lost, and the call is made again
    return reply;
  };
  return new Proxy(redis, {
    get(target, name) {
      if (name === 'evalsha') return evalsha;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function ignoreMissingScript(error: unknown): void {
  if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
}
