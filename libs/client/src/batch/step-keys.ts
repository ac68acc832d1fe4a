/** Idempotency key of a command of a task. Each attempt at a task has its own session, so the key is unique there. */
export const stepKey = (step: 'setup' | 'script', index: number) => `${step}-${index + 1}`;

/** Idempotency key of the grade in the session of the task. */
export const GRADE_KEY = 'grade';

/** Returns the idempotency keys of all commands that a task with this many scripts may run in its session. */
export function idempotencyKeysOf(setups: number, scripts: number): string[] {
  const of = (step: 'setup' | 'script', count: number) =>
    Array.from({ length: count }, (_, index) => stepKey(step, index));
  return [...of('setup', setups), ...of('script', scripts), GRADE_KEY];
}
