import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectTestRedis, newNamespace, type TestRedis } from '../support/mailbox-session.ts';
import { runTrial, type TrialReport } from '../support/mailbox-trial.ts';

// Invariants 1 to 5 and 7, whatever process dies between any two calls. For a longer run:
// SHELLFLEET_TEST_MAILBOX_SECONDS=300. To repeat one trial: SHELLFLEET_TEST_MAILBOX_SEED=<seed> with
// SHELLFLEET_TEST_MAILBOX_SECONDS=0.
const SECONDS = Number(process.env.SHELLFLEET_TEST_MAILBOX_SECONDS ?? 8);
const FIRST_SEED = Number(process.env.SHELLFLEET_TEST_MAILBOX_SEED ?? Date.now() % 1_000_000_000);
const AT_ONCE = 8;

let connected: TestRedis;
beforeAll(async () => {
  connected = await connectTestRedis();
});
afterAll(() => connected[Symbol.asyncDispose]());

describe('an accepted command', () => {
  test(
    'runs and ends once, in order, whichever process dies and whatever arrives twice',
    async () => {
      const namespace = newNamespace();
      const endAt = performance.now() + SECONDS * 1_000;
      const reports: TrialReport[] = [];
      let seed = FIRST_SEED;
      do {
        const some = Array.from({ length: SECONDS === 0 ? 1 : AT_ONCE }, () =>
          runTrial(connected.redis, namespace, seed++),
        );
        reports.push(...(await Promise.all(some)));
      } while (performance.now() < endAt && reports.every(({ problems }) => problems.length === 0));
      console.info(`mailbox crash points, first seed ${FIRST_SEED}: ${JSON.stringify(summarize(reports))}`);
      expect(reports.filter(({ problems }) => problems.length > 0)).toEqual([]);
      expect(reports.flatMap(({ commands }) => commands).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
    },
    (SECONDS + 60) * 1_000,
  );
});

function summarize(reports: TrialReport[]) {
  const total = (of: (report: TrialReport) => number) => reports.reduce((sum, report) => sum + of(report), 0);
  const outcomes: Record<string, number> = {};
  for (const report of reports)
    for (const [outcome, count] of Object.entries(report.outcomes))
      outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
  return {
    trials: reports.length,
    commands: total(({ commands }) => commands),
    crashes: total(({ crashes }) => crashes),
    acquisitions: total(({ acquisitions }) => acquisitions),
    reran: total(({ reran }) => reran),
    outcomes,
    problems: total(({ problems }) => problems.length),
  };
}
