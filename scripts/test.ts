import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureMachine, type Machine, SetupError, stopDocker } from '@shellfleet/setup';
import { runChecks } from './check.ts';
import { countTests, type TestReport } from './count-tests.ts';
import { root, runStep } from './steps.ts';

// `npm test`: everything, on a real engine and a real Redis. The last line has the counts, for people and for CI.

type Tally = { passed: number; failed: number };

/** A part that did not come to run is a failure: nothing is skipped silently. */
const cutShort: Tally = { passed: 0, failed: 1 };

async function main(filters: string[]): Promise<number> {
  let interrupted = false;
  // Interrupted, it still stops what it started, and says how far it came.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      interrupted = true;
    });
  const checks = await runChecks();
  const machine = interrupted ? undefined : await setUp();
  if (!machine) return close(checks, cutShort);
  try {
    const tests = interrupted ? cutShort : await runTests(filters);
    return close(checks, tests);
  } finally {
    if (machine.engine.startedHere) await stopDocker(process.env);
  }
}

// Brought up here and not by vitest alone: what is missing is said in one line, and not by every test.
async function setUp(): Promise<Machine | undefined> {
  try {
    return await ensureMachine(process.env, (line) => console.error(line));
  } catch (error) {
    console.error(error instanceof SetupError ? error.message : error);
    return undefined;
  }
}

async function runTests(filters: string[]): Promise<Tally> {
  const reportPath = join(root, '.cache/vitest.json');
  await mkdir(join(root, '.cache'), { recursive: true });
  await rm(reportPath, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportPath}`];
  const endedWell = await runStep(
    ['node_modules/.bin/vitest', 'run', '--allowOnly=false', ...reporters, ...filters],
    root,
  );
  const count = countTests(await readReport(reportPath), endedWell);
  for (const name of count.notRun) console.log(`not run: ${name}`);
  return count;
}

async function readReport(path: string): Promise<TestReport> {
  const text = await readFile(path, 'utf8').catch(() => '{"testResults":[]}');
  return JSON.parse(text) as TestReport;
}

function close(...tallies: Tally[]): number {
  const passed = tallies.reduce((sum, tally) => sum + tally.passed, 0);
  const failed = tallies.reduce((sum, tally) => sum + tally.failed, 0);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
