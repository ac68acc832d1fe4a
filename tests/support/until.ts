import { setTimeout as delay } from 'node:timers/promises';

/** Calls `ask` again and again until `accept` takes its answer, and returns that answer. For conditions that raise no event. */
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

/** Calls `look` until it finds something, and returns that. The error names what was looked for. */
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
