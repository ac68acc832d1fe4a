import { type FileHandle, open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { ShellfleetError, type Task, type TaskResult } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { CANCELLED } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';
import { parseCount } from './units.ts';

interface Flags {
  out: string;
  concurrency?: number;
  resume?: boolean;
  json?: boolean;
}

export function registerBatch(program: Command, context: Context): void {
  program
    .command('batch')
    .description('run many tasks, each in a session of its own')
    .command('run')
    .description('run the tasks of a file: one JSON object a line, { id, script, spec?, files?, timeoutMs? }')
    .argument('<file.jsonl>')
    .addOption(
      new Option('--out <file>', 'results, one JSON object a line').env('SHELLFLEET_BATCH_OUT').makeOptionMandatory(),
    )
    .addOption(
      new Option('--concurrency <n>', 'tasks that run or wait at once')
        .env('SHELLFLEET_BATCH_CONCURRENCY')
        .argParser(parseCount),
    )
    .addOption(new Option('--resume', 'skip the tasks that ended in --out before').env('SHELLFLEET_BATCH_RESUME'))
    .addOption(jsonFlag())
    .action((file: string, flags: Flags) => run(context, file, flags));
}

async function run(context: Context, file: string, flags: Flags): Promise<void> {
  const { terminal } = context;
  let total = 0;
  // The whole file is checked first, so that a line that is not valid is reported before any task runs.
  for await (const _task of readTasks(file)) total++;
  await context.withFleet(async (fleet) => {
    using interrupt = listenForInterrupt(terminal);
    const batch = fleet.batch(readTasks(file), {
      signal: interrupt.signal,
      ...(flags.concurrency === undefined ? {} : { concurrency: flags.concurrency }),
      ...(flags.resume ? { resumeFrom: flags.out } : {}),
    });
    const out = await openLocal(flags.out, flags.resume ? 'a' : 'w');
    let done = 0;
    try {
      for await (const result of batch) {
        done++;
        await out.appendFile(`${JSON.stringify(result)}\n`);
        if (flags.json) await terminal.json(result);
        else await terminal.line(toLine(result));
        terminal.progress(`${done + batch.totals.skipped} of ${total} tasks`);
      }
    } finally {
      await out.close();
    }
    const { tasks, skipped, success } = batch.totals;
    const failed = tasks - skipped - success;
    terminal.say(`${success} succeeded, ${failed} did not, ${skipped} had ended before. Results are in ${flags.out}.`);
    context.setExitCode(interrupt.signal.aborted ? CANCELLED : failed > 0 ? 1 : 0);
  });
}

/** The first Ctrl-C cancels the running tasks and starts no further one; the second leaves. */
function listenForInterrupt(terminal: Terminal): Disposable & { signal: AbortSignal } {
  const stop = new AbortController();
  const interrupt = () => {
    if (stop.signal.aborted) process.exit(CANCELLED);
    terminal.say('Cancelling the running tasks; Ctrl-C again leaves at once. --resume continues from here.');
    stop.abort();
  };
  process.on('SIGINT', interrupt);
  return { signal: stop.signal, [Symbol.dispose]: () => void process.off('SIGINT', interrupt) };
}

function toLine({ id, outcome, results, error, durationMs }: TaskResult): string {
  const exitCode = results.at(-1)?.exitCode;
  const detail = error?.message ?? (exitCode === null || exitCode === undefined ? '' : `exit ${exitCode}`);
  // Ids come from outside. JSON quoting keeps control characters in them from reaching the terminal.
  return [JSON.stringify(id).slice(1, -1), outcome, detail && JSON.stringify(detail).slice(1, -1), `${durationMs} ms`]
    .filter((part) => part !== '')
    .join('  ');
}

async function* readTasks(file: string): AsyncGenerator<Task> {
  const handle = await openLocal(file, 'r');
  const lines = createInterface({ input: handle.createReadStream(), crlfDelay: Number.POSITIVE_INFINITY });
  let number = 0;
  for await (const line of lines) {
    number++;
    if (line.trim() !== '') yield parseTask(line, `${file}:${number}`);
  }
}

function parseTask(line: string, place: string): Task {
  try {
    const task: unknown = JSON.parse(line);
    // The batch itself checks the fields of each task, and yields a result for an invalid one.
    if (typeof task === 'object' && task !== null && !Array.isArray(task)) return task as Task;
  } catch {
    // reported below
  }
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `${place} is not a task. Give one JSON object per line: {"id": "a", "script": "true"}.`,
    { place },
  );
}

async function openLocal(path: string, flags: 'r' | 'a' | 'w'): Promise<FileHandle> {
  try {
    return await open(path, flags);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const kind = code === 'ENOENT' ? 'FILE_NOT_FOUND' : 'FILE_DENIED';
    throw new ShellfleetError(kind, `${path} cannot be opened: ${message}.`, { path }, { cause });
  }
}
