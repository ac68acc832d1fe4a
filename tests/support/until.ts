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
