import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** Polls `ask` until `accept` returns true for its value, and returns that value. For conditions without an event. */
export async function until<T>(
  ask: () => T | Promise<T>,
  accept: (answer: T) => boolean,
  withinMs = 20_000,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (accept(answer)) return answer;
    if (Date.now() > deadline)
      throw new Error(`Not within ${withinMs} ms; the last answer was ${JSON.stringify(answer)}`);
    await delay(20);
  }
}

/** Polls `look` until it returns a value, and returns that value. The error names the missing thing. */
export async function untilFound<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  withinMs = 10_000,
): Promise<T> {
  const found = await until(look, (answer) => answer !== undefined && answer !== false, withinMs).catch((cause) => {
    throw new Error(`Not found in time: ${what}`, { cause });
  });
  return found as T;
}

/**
 * Resolves at the next event of this name. `once` of node:events rejects at an `error` before it, which a connection
 * has for each attempt that Redis refuses.
 */
export function untilEvent(emitter: EventEmitter, name: string): Promise<void> {
  return new Promise((resolve) => {
    emitter.once(name, () => resolve());
  });
}
