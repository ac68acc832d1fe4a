import { setTimeout as delay } from 'node:timers/promises';

/** Asks until the answer is one that `accept` takes, and returns it. What a test waits for has no event of its own. */
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

/** Looks until it finds something, and returns that; otherwise says what did not come to be. */
export async function untilFound<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  withinMs = 10_000,
): Promise<T> {
  const found = await until(look, (answer) => answer !== undefined && answer !== false, withinMs).catch((cause) => {
    throw new Error(`It did not come to be: ${what}`, { cause });
  });
  return found as T;
}
