import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkoutRoot, ensureMachine, stopDocker } from '@shellfleet/setup';
import { compare, readHistory } from './history.ts';
import { readMachine } from './machine.ts';
import { type Plan, readPlan } from './plan.ts';
import { HISTORY, record } from './report/record.ts';
import { renderComparisons, renderFigures, renderTargets } from './report/table.ts';
import { startRows } from './start-rows.ts';
import { takeFigures } from './take-figures.ts';
import { checkTargets } from './targets.ts';

// `npm run bench -- [--quick] [--no-gate] [--record] [--metrics] [--only PART,…]`: measures every row in one run,
// writes the figures to bench-results/ and stdout, and checks the targets and the comparison with recorded runs.

const docs = join(checkoutRoot, 'docs');

async function main(plan: Plan, cleanup: AsyncDisposableStack): Promise<number> {
  const history = await readHistory(join(docs, HISTORY)); // read first, so that an unreadable file fails before minutes of measuring
  const machine = await ensureMachine(process.env, report);
  if (machine.engine.startedHere) cleanup.defer(async () => void (await stopDocker(process.env)));
  const bench = await startRows(plan, machine, cleanup, report);
  const figures = await takeFigures(bench, plan);
  const targets = checkTargets(figures);

  const at = new Date().toISOString();
  const facts = await readMachine({ redis: await bench.probe.version(), docker: machine.engine.version });
  const comparisons = compare(targets, history, facts.cpus);
  const path = join(checkoutRoot, 'bench-results', `${at.replaceAll(':', '-')}.json`);
  await mkdir(join(checkoutRoot, 'bench-results'), { recursive: true });
  const all = { at, machine: facts, plan, ...figures, targets, comparisons };
  await writeFile(path, `${JSON.stringify(all, undefined, 2)}\n`);
  const tables = [renderFigures(figures, plan), renderTargets(targets), renderComparisons(comparisons)].join('\n\n');
  console.log(`${tables}\n\n${path}`);
  if (plan.record)
    for (const written of await record({ at, machine: facts, plan, figures, targets, tables }, history, docs))
      report(`Recorded in ${written}`);
  return plan.gate && [...targets, ...comparisons].some(({ passed }) => !passed) ? 1 : 0;
}

function report(line: string): void {
  console.error(line);
}

const plan = readPlan(process.argv.slice(2));
const cleanup = new AsyncDisposableStack();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void cleanup.disposeAsync().finally(() => process.exit(130)));
try {
  process.exitCode = await main(plan, cleanup);
} finally {
  await cleanup.disposeAsync();
}
