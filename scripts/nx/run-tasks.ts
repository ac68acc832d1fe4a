import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { countTests, readReport, type Tally } from '../count-tests.ts';
import { root, runStep } from '../steps.ts';

/** Status that Nx reports for each task id (`project:target`). */
type Statuses = Record<
  string,
  'success' | 'failure' | 'skipped' | 'stopped' | 'local-cache' | 'local-cache-kept-existing' | 'remote-cache'
>;

const targets = ['types', 'python-types', 'format', 'lint', 'dead-code', 'c-source', 'unit'];
const statusesPath = '.cache/nx-tasks.json';

/** Runs the checks and unit tests of every project, or takes results from Nx's cache. Each check counts as one test. */
export async function runChecksAndUnitTests(directory = root): Promise<Tally> {
  // Removes files of an earlier run. Nx restores those of cached tasks.
  for (const path of ['.cache/unit', statusesPath]) await rm(join(directory, path), { recursive: true, force: true });
  const command = ['run-many', '-t', targets.join(','), '--outputStyle=static', '--nxBail=false'];
  const endedWell = await runStep(['node_modules/.bin/nx', ...command], directory);
  const tally = await countTasks(directory, await readStatuses(directory));
  return endedWell || tally.failed > 0 ? tally : { ...tally, failed: 1 };
}

/** Counts the results. A task without a status did not run, which is a failure. */
export async function countTasks(directory: string, statuses: Statuses, report = console.log): Promise<Tally> {
  const total = { passed: 0, failed: Object.keys(statuses).length === 0 ? 1 : 0 };
  for (const [id, status] of Object.entries(statuses)) {
    const isCached = status.endsWith('-cache') || status === 'local-cache-kept-existing';
    const { passed, failed } = await countTask(directory, id, isCached || status === 'success', report);
    total.passed += passed;
    total.failed += failed;
    if (isCached) report(`cached: ${id} (${passed} passed)`);
    else if (status !== 'success') report(`${status}: ${id}`);
  }
  return total;
}

async function countTask(
  directory: string,
  id: string,
  endedWell: boolean,
  report: typeof console.log,
): Promise<Tally> {
  const [project, target] = id.split(':') as [string, string];
  if (target !== 'unit') return endedWell ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
  const tests = await readReport(join(directory, '.cache/unit', `${project}.json`));
  const count = countTests(tests, endedWell && tests.testResults.length > 0);
  for (const name of count.notRun) report(`not run: ${name}`);
  return count;
}

async function readStatuses(directory: string): Promise<Statuses> {
  const text = await readFile(join(directory, statusesPath), 'utf8').catch(() => '{}');
  return JSON.parse(text) as Statuses;
}
