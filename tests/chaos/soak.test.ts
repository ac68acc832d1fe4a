import { setTimeout as delay } from 'node:timers/promises';
import type { Command, Result, Session } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { createRandom, type Random } from '../support/random.ts';
import { slotsFor } from '../support/slots-for.ts';
import { startFleet, type TestWorker } from '../support/start-fleet.ts';

// Invariants 2, 3, 4 and 7 while workers are killed at random. For a longer run, or another seed:
// SHELLFLEET_SOAK_SECONDS=600 SHELLFLEET_SOAK_SEED=7 npx vitest run --project chaos tests/chaos/soak.test.ts

const SECONDS = Number(process.env.SHELLFLEET_SOAK_SECONDS ?? 6);
const SEED = Number(process.env.SHELLFLEET_SOAK_SEED ?? 1);
const WORKERS = 3;
const SESSIONS = 12;
const BIG_BYTES = 3_000_000;
/** The stream keeps little output, so that no long run is trimmed before its check. The overflow log has the rest. */
const SPEC = { output: { streamBytes: 100_000 } };

interface Sent {
  command: Command;
  expected: Partial<Result>;
}

/**
 * Scripts that run after their command's number was written to a file in the sandbox, and their Results. A second run
 * would write the number twice.
 */
const SCRIPTS: readonly [ScriptOf, ...ScriptOf[]] = [
  (n) => ({ script: `echo ${n}`, expected: { outcome: 'success', stdout: `${n}\n` } }),
  (n) => ({ script: `echo ${n}; sleep 0.3; echo over`, expected: { outcome: 'success', stdout: `${n}\nover\n` } }),
  (n) => ({ script: `echo ${n} >&2; (exit 3)`, expected: { outcome: 'failure', exitCode: 3, stderr: `${n}\n` } }),
  (n) => ({ script: `echo ${n}; exit 4`, expected: { outcome: 'failure', exitCode: 4, stdout: `${n}\n` } }),
  () => ({
    script: `yes | head -c ${BIG_BYTES}`,
    expected: {
      outcome: 'success',
      totals: { stdoutBytes: BIG_BYTES, stdoutLines: BIG_BYTES / 2, stderrBytes: 0, stderrLines: 0 },
    },
  }),
];
type ScriptOf = (n: number) => { script: string; expected: Partial<Result> };

describe('workers that are killed and restarted at random', () => {
  test(
    'give every command one Result, in order, and run none twice',
    async () => {
      const random = createRandom(SEED);
      const until = Date.now() + SECONDS * 1_000;
      await using stack = await startFleet({ workers: WORKERS, slots: slotsFor(SESSIONS) });
      await using inspect = inspectFleet(stack);
      const sessions = await Promise.all(
        Array.from({ length: SESSIONS }, (_, index) => stack.fleet.session(`s${index}`, SPEC)),
      );
      const kills = { count: 0 };
      const killing = stack.workers.map((worker) => killAgainAndAgain(worker, random, until, kills));
      const sent = await Promise.all(sessions.map((session) => submitAgainAndAgain(session, random, until)));
      await Promise.all(killing);

      let commands = 0;
      for (const [index, session] of sessions.entries()) {
        const own = sent[index] ?? [];
        commands += own.length;
        const results = await Promise.all(own.map(({ command }) => command.result()));
        expect(results).toMatchObject(own.map(({ expected }) => expected));
        // No shell was lost.
        expect(
          results.filter(({ shell }) => shell.state === 'lost').map(({ commandId, shell }) => ({ commandId, shell })),
        ).toEqual([]);
        const ran = await session.run('cat /tmp/ran');
        expect(ran.stdout).toBe(own.map((_, n) => `${n}\n`).join(''));
        expect(
          await inspect.broken(
            session.id,
            own.map(({ command }) => command.id),
          ),
        ).toEqual([]);
      }
      console.info(`seed ${SEED}: ${commands} commands in ${SESSIONS} sessions, ${kills.count} kills in ${SECONDS} s`);
      await Promise.all(sessions.map((session) => session.close()));
      await expect.poll(() => inspect.containers()).toEqual([]);
    },
    (SECONDS + 90) * 1_000,
  );
});

async function killAgainAndAgain(worker: TestWorker, random: Random, until: number, kills: { count: number }) {
  while (Date.now() < until) {
    await delay(200 + random.below(2_500));
    await worker.stop(random.chance(0.9) ? 'SIGKILL' : 'SIGTERM');
    kills.count += 1;
    await delay(random.below(600));
    await worker.start();
  }
}

async function submitAgainAndAgain(session: Session, random: Random, until: number): Promise<Sent[]> {
  const sent: Sent[] = [];
  while (Date.now() < until) {
    for (let burst = 1 + random.below(4); burst > 0; burst -= 1) {
      const n = sent.length;
      const { script, expected } = random.pick(SCRIPTS)(n);
      const command = await session.submit(`echo ${n} >> /tmp/ran\n${script}`, { timeoutMs: 120_000 });
      sent.push({ command, expected });
    }
    if (random.chance(0.5)) await sent.at(-1)?.command.result();
    else await delay(random.below(300));
  }
  return sent;
}
