import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkoutRoot, ensureMachine, stopDocker } from '@shellfleet/setup';
import { readMachine } from './machine.ts';
import { type Plan, readPlan } from './plan.ts';
import { startRows } from './start-rows.ts';
import { renderFigures, renderTargets } from './table.ts';
import { takeFigures } from './take-figures.ts';
import { judge } from './targets.ts';

// `npm run bench -- [--quick] [--no-gate] [--only PART,…]`: every row in one run, figures to bench-results/ and stdout, then the targets.

async function main(plan: Plan, cleanup: AsyncDisposableStack): Promise<number> {
  const machine = await ensureMachine(process.env, report);
  if (machine.engine.startedHere) cleanup.defer(async () => void (await stopDocker(process.env)));
  const bench = await startRows(plan, machine, cleanup, report);
  const figures = await takeFigures(bench, plan);
  const targets = judge(figures);

  const at = new Date().toISOString();
  const facts = await readMachine({ redis: await bench.probe.version(), docker: machine.engine.version });
  const path = join(checkoutRoot, 'bench-results', `${at.replaceAll(':', '-')}.json`);
  await mkdir(join(checkoutRoot, 'bench-results'), { recursive: true });
  await writeFile(path, `${JSON.stringify({ at, machine: facts, plan, ...figures, targets }, undefined, 2)}\n`);
  console.log(`${renderFigures(figures, plan)}\n\n${renderTargets(targets)}\n\n${path}`);
  return plan.gate && targets.some(({ passed }) => !passed) ? 1 : 0;
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
