import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { bundleInto } from '../support/programs.ts';
import { CLIENT_PROGRAM, type RoundReport, runRound } from './drive/run-round.ts';
import { ROUND_KINDS } from './plan/rounds.ts';

// Every promise of docs/reliability.md under random faults, for as long as a run of all tests allows. `npm run chaos --
// --minutes 30 --seed N` runs the same rounds for longer and with other seeds.

let directory: string;
let client: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-programs-'));
  ({ client } = await bundleInto(directory, { client: CLIENT_PROGRAM }));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const rounds = ROUND_KINDS.flatMap((kind) => (kind.inTests === undefined ? [] : [{ kind, ...kind.inTests }]));

describe('random faults', () => {
  test.each(rounds)(
    'lose, double, reorder and cut nothing: $kind.name',
    async ({ kind, seed, seconds }) => {
      const machine = {
        dockerHost: inject('dockerHost'),
        sessionImage: inject('sessionImage'),
        worker: inject('programs').worker,
      };
      const report = await runRound({ kind, seed, seconds, machine, client });
      const { history, violations } = report;
      const commands = history.sessions.reduce((sum, { operations }) => sum + operations.length, 0);
      console.info(`${kind.name}: ${commands} commands, ${history.faults.length} faults`);
      if (violations.length > 0) await keep(report);
      expect(violations.map(({ rule, session, text }) => `${rule} ${session}: ${text}`)).toEqual([]);
      expect(commands).toBeGreaterThan(0);
    },
    // The time limit is longer than a round, which reports by itself that it does not end.
    400_000,
  );
});

/** Writes the whole histories and the logs of the workers to a file. */
async function keep(report: RoundReport): Promise<void> {
  const directory = fileURLToPath(new URL('../../chaos-results/in-tests', import.meta.url));
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${report.kind.replaceAll(' ', '-')}.json`);
  await writeFile(path, `${JSON.stringify(report, undefined, 1)}\n`);
  console.info(`the histories: ${path}`);
}
