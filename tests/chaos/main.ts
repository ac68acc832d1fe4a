import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot, ensureDocker, ensureMachine, stopDocker } from '@shellfleet/setup';
import { readMachine } from '../bench/machine.ts';
import { bundleInto } from '../support/programs.ts';
import { CLIENT_PROGRAM, type RoundReport, runRound } from './drive/run-round.ts';
import { type ChaosPlan, readChaosPlan } from './plan/chaos-plan.ts';
import { seedOf } from './plan/operations.ts';
import { ROUND_KINDS, type RoundKind } from './plan/rounds.ts';
import { renderHtml } from './report/render-html.ts';
import { summarize } from './report/summarize.ts';

// `npm run chaos -- [--minutes 30] [--seed N] [--round N] [--seconds 60] [--restart-engine]`: runs rounds of random
// faults until the time is over. The exit code is 1 when a promise was broken.

async function main(plan: ChaosPlan, cleanup: AsyncDisposableStack): Promise<number> {
  const machine = await ensureMachine(process.env, console.error);
  if (machine.engine.startedHere) cleanup.defer(async () => void (await stopDocker(process.env)));
  const programs = await mkdtemp(join(tmpdir(), 'shellfleet-programs-'));
  cleanup.defer(() => rm(programs, { recursive: true, force: true }));
  const { worker, client } = await bundleInto(programs, { worker: 'apps/worker/src/main.ts', client: CLIENT_PROGRAM });
  const ground = { dockerHost: machine.engine.endpoint.dockerHost, sessionImage: machine.sessionImage, worker };
  const facts = await readMachine({ redis: 'see the machine', docker: machine.engine.version });

  const mayRestart = plan.restartEngine && machine.engine.startedHere;
  const engine = mayRestart ? { restartEngine } : {};
  const results = join(checkoutRoot, 'chaos-results', new Date().toISOString().replaceAll(':', '-'));
  await mkdir(results, { recursive: true });
  const reports: RoundReport[] = [];
  const until = Date.now() + plan.minutes * 60_000;
  for (let round = plan.round ?? 0; ; round += 1) {
    const kind = ROUND_KINDS[round % ROUND_KINDS.length] as RoundKind;
    const seed = seedOf(plan.seed, `round ${round}`);
    const report = await runRound({ kind, seed, seconds: plan.seconds, machine: ground, client, ...engine });
    reports.push(report);
    describe(round, report);
    // A history with a broken promise is kept whole, with the logs of its workers.
    if (report.violations.length > 0) await write(results, `round-${round}.json`, report);
    const summary = summarize(plan.seed, reports);
    await write(results, 'report.json', { machine: facts, ...summary });
    await writeFile(join(results, 'report.html'), renderHtml(summary));
    if (plan.round !== undefined || Date.now() >= until) break;
  }
  console.log(join(results, 'report.html'));
  return reports.some(({ violations }) => violations.length > 0) ? 1 : 0;
}

async function restartEngine(): Promise<void> {
  await stopDocker(process.env);
  await ensureDocker(process.env, console.error);
}

function describe(round: number, { kind, history, violations }: RoundReport): void {
  const commands = history.sessions.reduce((sum, { operations }) => sum + operations.length, 0);
  const faults = history.faults.filter(({ notRun }) => notRun === undefined).length;
  console.log(`round ${round}, ${kind}: ${commands} commands, ${faults} faults, ${violations.length} violations`);
  for (const { rule, session, text } of violations) console.log(`  ${rule} ${session}: ${text}`);
}

function write(directory: string, name: string, content: object): Promise<void> {
  return writeFile(join(directory, name), `${JSON.stringify(content, undefined, 1)}\n`);
}

const plan = readChaosPlan(process.argv.slice(2));
const cleanup = new AsyncDisposableStack();
try {
  process.exitCode = await main(plan, cleanup);
} finally {
  await cleanup.disposeAsync();
}
