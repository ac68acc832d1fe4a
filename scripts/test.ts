import { mkdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { ensureFullSessionImage, ensureMachine, type Machine, SetupError, stopDocker } from '@shellfleet/setup';
import {
  countTests,
  type Failure,
  hasPassed,
  listFailures,
  readReport,
  type Tally,
  type TestReport,
} from './count-tests.ts';
import { runChecksAndUnitTests } from './nx/run-tasks.ts';
import { measureSize, renderSize } from './repository/size.ts';
import { root, runStep } from './steps.ts';
import { recordRun } from './testing/test-record.ts';

// `npm test`: checks, unit tests, and the tests on a real engine and a real Redis. The last line has the counts.

/** Tally of a part that did not run, which counts as a failure, so that nothing is skipped silently. */
const notRun: Tally = { passed: 0, failed: 1 };

/** Greatest number of failures that are retried. More failures than that are not due to a slow machine. */
const triedAgainAtMost = 8;

async function main(filters: string[]): Promise<number> {
  let interrupted = false;
  // On an interrupt, this process still stops the engine that it started, and prints the counts so far.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      interrupted = true;
    });
  // Set-up and checks run in parallel, because set-up waits for downloads and disks, and checks use the processor.
  await using record = recordRun();
  const settingUp = record.part('set-up', setUp);
  const all = filters.length === 0;
  if (all) console.log(renderSize(await measureSize()));
  await using _ = all ? makeFullImage(settingUp) : undefined;
  const [machine, tasks] = await Promise.all([
    settingUp,
    all ? record.part('checks and unit tests', runChecksAndUnitTests) : undefined,
  ]);
  if (!machine) return close(tasks, notRun);
  try {
    return close(tasks, interrupted ? notRun : await record.part('all other tests', () => runTests(filters)));
  } finally {
    if (machine.engine.startedHere) await stopDocker(process.env);
  }
}

// Runs before vitest, so that one line, and not every test, reports a missing prerequisite.
async function setUp(): Promise<Machine | undefined> {
  try {
    return await ensureMachine(process.env, (line) => console.error(line));
  } catch (error) {
    console.error(error instanceof SetupError ? error.message : error);
    return undefined;
  }
}

/** Makes the image `full` in the background at the lowest priority. Only its own test waits for it. */
function makeFullImage(settingUp: Promise<Machine | undefined>): AsyncDisposable {
  const interrupted = new AbortController();
  const report = (line: string): void => console.error(line);
  const making = settingUp.then(
    (machine) => machine && ensureFullSessionImage(machine, process.env, report, interrupted.signal),
  );
  const ended = making.catch(() => undefined);
  return {
    async [Symbol.asyncDispose]() {
      interrupted.abort(new Error('The tests have ended.'));
      await ended;
    },
  };
}

/**
 * Runs the tests that Nx does not run, or with filters all matching tests. Retries a few failures alone and names them,
 * because tests of durations fail on a machine that stands still for seconds.
 */
async function runTests(filters: string[]): Promise<Tally> {
  const { report, endedWell } = await runVitest('vitest', filters.length === 0 ? ['--project=!unit'] : filters);
  const count = countTests(report, endedWell);
  for (const name of count.notRun) console.log(`not run: ${name}`);
  const failures = listFailures(report);
  if (filters.length > 0 || failures.length === 0 || failures.length > triedAgainAtMost) return count;
  const failed = await countFailedAgain(failures);
  return { passed: count.passed + count.failed - failed, failed };
}

async function countFailedAgain(failures: Failure[]): Promise<number> {
  const files = [...new Set(failures.map(({ file }) => relative(root, file)))];
  console.log(`\nrun again, one file at a time: ${files.join(' ')}`);
  const { report } = await runVitest('vitest-again', ['--project=!unit', '--maxWorkers=1', ...files]);
  const failedAgain = failures.filter((failure) => !hasPassed(failure, report));
  for (const failure of failures) {
    const times = failedAgain.includes(failure) ? 'failed twice' : 'failed in the whole run and passed alone';
    const [firstLine] = failure.message.split('\n');
    console.log(`${times}: ${relative(root, failure.file)}: ${failure.fullName || 'the file'}: ${firstLine}`);
  }
  return failedAgain.length;
}

async function runVitest(name: string, args: string[]): Promise<{ report: TestReport; endedWell: boolean }> {
  const path = join(root, `.cache/${name}.json`);
  await mkdir(join(root, '.cache'), { recursive: true });
  await rm(path, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${path}`];
  const endedWell = await runStep(
    ['node_modules/.bin/vitest', 'run', '--allowOnly=false', ...reporters, ...args],
    root,
  );
  return { report: await readReport(path), endedWell };
}

function close(...tallies: (Tally | undefined)[]): number {
  const passed = tallies.reduce((sum, tally) => sum + (tally?.passed ?? 0), 0);
  const failed = tallies.reduce((sum, tally) => sum + (tally?.failed ?? 0), 0);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
