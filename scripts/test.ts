import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureMachine, type Machine, SetupError, stopDocker } from '@shellfleet/setup';
import { countTests, readReport, type Tally } from './count-tests.ts';
import { runChecksAndUnitTests } from './nx/run-tasks.ts';
import { root, runStep } from './steps.ts';

// `npm test`: checks, unit tests, and the tests on a real engine and a real Redis. The last line has the counts.

/** A part that did not run is a failure: nothing is skipped silently. */
const notRun: Tally = { passed: 0, failed: 1 };

async function main(filters: string[]): Promise<number> {
  let interrupted = false;
  // On an interrupt, this process still stops the engine that it started, and prints the counts so far.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      interrupted = true;
    });
  // In parallel: set-up waits for downloads and disks, checks and unit tests use the processor.
  const [machine, tasks] = await Promise.all([setUp(), filters.length === 0 ? runChecksAndUnitTests() : undefined]);
  if (!machine) return close(tasks, notRun);
  try {
    return close(tasks, interrupted ? notRun : await runTests(filters));
  } finally {
    if (machine.engine.startedHere) await stopDocker(process.env);
  }
}

// Before vitest, so that a missing prerequisite is reported in one line and not by every test.
async function setUp(): Promise<Machine | undefined> {
  try {
    return await ensureMachine(process.env, (line) => console.error(line));
  } catch (error) {
    console.error(error instanceof SetupError ? error.message : error);
    return undefined;
  }
}

/** With filters: the matching tests of every project. Without: the projects that Nx does not run. */
async function runTests(filters: string[]): Promise<Tally> {
  const report = join(root, '.cache/vitest.json');
  await mkdir(join(root, '.cache'), { recursive: true });
  await rm(report, { force: true });
  const projects = filters.length === 0 ? ['--project=!unit'] : filters;
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const endedWell = await runStep(
    ['node_modules/.bin/vitest', 'run', '--allowOnly=false', ...reporters, ...projects],
    root,
  );
  const count = countTests(await readReport(report), endedWell);
  for (const name of count.notRun) console.log(`not run: ${name}`);
  return count;
}

function close(...tallies: (Tally | undefined)[]): number {
  const passed = tallies.reduce((sum, tally) => sum + (tally?.passed ?? 0), 0);
  const failed = tallies.reduce((sum, tally) => sum + (tally?.failed ?? 0), 0);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
