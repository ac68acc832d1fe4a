import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Fleet, readBatchResults, type Task, type TaskResult, verdictOf } from '@shellfleet/client';
import { ENDS, type End, INSTANCES } from './instances.ts';
import { makeTasks } from './make-tasks.ts';

// An evaluation of a model by bugs in repositories. For each bug the model wrote several patches. A run of a task
// applies one of them, and tests that the model has never seen grade what is left of it in a fresh session.

const SAMPLES = 3;
const { values } = parseArgs({
  options: {
    keep: { type: 'string' },
    'tasks-only': { type: 'boolean', default: false },
    timeout: { type: 'string', default: '10' },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<number> {
  if (values.help) return say('main.ts [--keep DIRECTORY [--tasks-only]] [--timeout SECONDS]   default: 10');
  const directory = values.keep ?? (await mkdtemp(join(tmpdir(), 'batch-patches-')));
  await mkdir(directory, { recursive: true });
  try {
    await using fleet = await Fleet.connect();
    const file = join(directory, 'tasks.jsonl');
    if (!existsSync(file)) await makeTasks(fleet, INSTANCES, directory, Number(values.timeout) * 1_000);
    if (values['tasks-only']) return say(`The tasks are in ${file}.`);
    const results = await evaluate(fleet, await readTasks(file), join(directory, 'results.jsonl'));
    showTable(results);
    return check(results) ? 0 : 1;
  } finally {
    if (values.keep === undefined) await rm(directory, { recursive: true, force: true });
  }
}

/** Runs the tasks that have no result yet, and returns the results of all. */
async function evaluate(fleet: Fleet, tasks: readonly Task[], out: string): Promise<TaskResult[]> {
  const resumeFrom = existsSync(out) ? out : undefined;
  const batch = fleet.batch(tasks, { out, resumeFrom, repeats: SAMPLES });
  batch.on('ended', (result) => say(`${result.id}: ${endOf(result)}, score ${(result.score ?? 0).toFixed(2)}`));
  await batch.run();
  return Array.fromAsync(readBatchResults(out));
}

/** Returns how a run ended, or how the fleet failed. */
function endOf(result: TaskResult): End | 'infrastructure' | 'cancelled' {
  const verdict = verdictOf(result);
  if (verdict === 'passed') return 'resolved';
  if (verdict !== 'failed') return verdict;
  if (result.outcome === 'failure') return 'did not apply';
  return result.outcome === 'timeout' || result.grade?.outcome === 'timeout' ? 'timed out' : 'failed';
}

/** Shows for each task how often it ended in which way, and whether one patch, or one of several, resolves it. */
function showTable(results: readonly TaskResult[]): void {
  const row = (name: string, own: readonly TaskResult[], passAtAll: number) => {
    const counts = ENDS.map((end) => own.filter((result) => endOf(result) === end).length);
    const [passAt1 = 0] = counts.map((count) => count / own.length);
    return [name, ...counts.map(String), passAt1.toFixed(2), passAtAll.toFixed(2)];
  };
  const byTask = INSTANCES.map(({ name }) => ({ name, own: results.filter(({ task }) => task === name) }));
  const isResolved = ({ own }: { own: readonly TaskResult[] }) => Number(own.some(({ passed }) => passed));
  const all = byTask.reduce((sum, task) => sum + isResolved(task), 0) / byTask.length;
  const rows = [
    ['', ...ENDS, 'pass@1', `pass@${SAMPLES}`],
    ...byTask.map((task) => row(task.name, task.own, isResolved(task))),
    row('all', results, all),
  ];
  for (const [name = '', ...cells] of rows) say(name.padEnd(8) + cells.map((cell) => cell.padStart(15)).join(''));
}

/** Compares each result with how its patch must end. */
function check(results: readonly TaskResult[]): boolean {
  const wanted = INSTANCES.flatMap(({ name, samples }) =>
    samples.map(({ end }, index) => ({ id: `${name}#${index + 1}`, end })),
  );
  const wrong = wanted.filter(({ id, end }) => {
    const result = results.find((result) => result.id === id);
    return result === undefined || endOf(result) !== end;
  });
  for (const { id, end } of wrong)
    say(`${id} should have ${end}: ${JSON.stringify(results.find((result) => result.id === id))}`);
  return wrong.length === 0 && results.length === wanted.length;
}

const readTasks = async (file: string): Promise<Task[]> =>
  (await readFile(file, 'utf8')).split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Task]));

function say(line: string): number {
  console.log(line);
  return 0;
}

process.exitCode = await main();
