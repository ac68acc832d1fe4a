import type { Result, Session } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet } from '../support/start-fleet.ts';
import { unowned } from '../support/unowned.ts';

// More rounds: SHELLFLEET_TEST_RESTARTS=20 vitest run --project chaos tests/chaos/rolling-restarts.test.ts
const ROUNDS = Number(process.env.SHELLFLEET_TEST_RESTARTS ?? 3);
const SESSIONS = 6;

/**
 * Runs commands one after another until told to stop. Each counts in a variable of its shell, so a lost shell is
 * noticed.
 */
async function load(session: Session, stopped: () => boolean): Promise<{ result: Result; counted: string }[]> {
  const results: { result: Result; counted: string }[] = [];
  while (!stopped()) {
    const result = await session.run(`count=$((count + 1)); sleep 0.$((count % 7)); echo $count`);
    results.push({ result, counted: result.stdout.trim() });
  }
  return results;
}

describe('rolling restarts', () => {
  test(`lose or fail no command in ${ROUNDS} rounds, and every shell keeps its state`, async () => {
    await using stack = await startFleet({ workers: 2, slots: SESSIONS });
    await using inspector = inspectFleet(stack);
    const ids = Array.from({ length: SESSIONS }, (_, index) => `rolling-${index}`);
    const sessions = await Promise.all(ids.map((id) => stack.fleet.session(id)));
    let stopped = false;
    const loads = Promise.all(sessions.map((session) => load(session, () => stopped)));
    // Short-lived sessions run at the same time.
    const shortLived = (async () => {
      const results: Result[] = [];
      while (!stopped) results.push(await stack.fleet.run('echo short'));
      return results;
    })();
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const worker of stack.workers) {
        await worker.stop('SIGTERM');
        await worker.start();
      }
    }
    stopped = true;
    const [all, short] = await Promise.all([loads, shortLived]);
    const figures = { rounds: ROUNDS, restarts: 2 * ROUNDS, commands: all.flat().length + short.length };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    const wrong = all.flatMap((results, index) =>
      results
        .map(({ result, counted }, at) => ({
          id: ids[index],
          at,
          counted,
          outcome: result.outcome,
          shell: result.shell,
        }))
        .filter(
          ({ at, counted, outcome, shell }) => outcome !== 'success' || counted !== `${at + 1}` || shell.epoch !== 1,
        ),
    );
    expect(wrong).toEqual([]);
    expect(short.filter(({ outcome }) => outcome !== 'success')).toEqual([]);
    const accepted = all.map((results) => results.map(({ result }) => result.commandId));
    const broken = await Promise.all(ids.map((id, index) => inspector.broken(id, accepted[index])));
    expect(broken.flat()).toEqual([]);
    expect(await unowned(stack, inspector)).toEqual([]);
  }, 900_000);
});
