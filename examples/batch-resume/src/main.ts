import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Fleet, type Task, type TaskResult } from '@shellfleet/client';

// Tasks of three steps each, in a batch whose driver is killed in the middle. A second driver continues the batch: it
// skips the tasks that had ended, waits for the tasks that run, and starts the others. In the end each step of each
// task has run once.

const STEPS = 3;
const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '40' },
    drive: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const taskCount = Number(values.tasks);

async function main(): Promise<number> {
  if (values.help) return say('main.ts [--tasks N]   default: 40');
  if (values.drive !== undefined) return drive(values.drive);

  const directory = await mkdtemp(join(tmpdir(), 'batch-resume-'));
  try {
    const out = join(directory, 'results.jsonl');
    const killed = startDriver(out);
    while ((await readResults(out)).length < taskCount / 3 && killed.exitCode === null) await delay(20);
    killed.kill('SIGKILL');
    await ended(killed);
    say(`The driver was killed when ${(await readResults(out)).length} of ${taskCount} tasks had ended.`);
    const exitCode = await ended(startDriver(out));
    if (exitCode !== 0) say(`The second driver ended with ${exitCode}.`);
    return (await check(out)) && exitCode === 0 ? 0 : 1;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Drives the batch, in its own process. A second driver finds the batch by the file of results. */
async function drive(out: string): Promise<number> {
  await using fleet = await Fleet.connect();
  const tasks = Array.from({ length: taskCount }, (_, index) => toTask(index));
  const batch = fleet.batch(tasks, { out, resumeFrom: existsSync(out) ? out : undefined, concurrency: 10 });
  const { success, skipped } = await batch.run();
  say(`A driver saw ${success} tasks end; ${skipped} had ended before.`);
  return success + skipped === taskCount ? 0 : 1;
}

/**
 * Returns a task. Each step adds a line to a file of its session and prints the number of lines, so a step that ran
 * twice is noticed.
 */
function toTask(index: number): Task {
  const step = 'echo done >> steps; sleep 0.2; echo "step $(wc -l < steps)"';
  return { id: `task-${index + 1}`, script: Array.from({ length: STEPS }, () => step) };
}

async function check(out: string): Promise<boolean> {
  const results = await readResults(out);
  const ids = new Set(results.map(({ id }) => id));
  const wanted = Array.from({ length: STEPS }, (_, index) => `step ${index + 1}\n`).join('');
  const once = results.filter(({ results }) => results.map(({ stdout }) => stdout).join('') === wanted);
  // A task that was begun again would have a second session, and `attempts` would be 2.
  const inOneSession = results.filter(({ attempts }) => attempts === 1);
  say(`${ids.size} tasks have a result, in ${results.length} lines; in ${once.length} each step ran once.`);
  return [ids.size, results.length, once.length, inOneSession.length].every((count) => count === taskCount);
}

function startDriver(out: string): ChildProcess {
  const main = fileURLToPath(import.meta.url);
  const args = [...process.execArgv, main, '--drive', out, '--tasks', String(taskCount)];
  return spawn(process.execPath, args, { stdio: 'inherit' });
}

async function ended(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

/** Reads the complete lines of the file. The last line may be incomplete if the driver was killed while it wrote. */
async function readResults(out: string): Promise<TaskResult[]> {
  const lines = (await readFile(out, 'utf8').catch(() => '')).split('\n').slice(0, -1);
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as TaskResult);
}

function say(line: string): number {
  console.log(line);
  return 0;
}

process.exitCode = await main();
