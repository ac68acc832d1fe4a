import { statSync } from 'node:fs';
import { type BatchOptions, ShellfleetError, type TaskResult } from '@shellfleet/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { openTaskFile } from './batch-tasks.ts';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { EXIT_CANCELLED } from './exit-codes.ts';
import { addSessionFlags, type SessionFlags, toSpec } from './session-flags.ts';
import type { CliOutput } from './terminal.ts';
import { parseCount, parseDuration } from './units.ts';
import { watchBatch } from './watch-batch.ts';

interface Flags extends SessionFlags {
  out: string;
  concurrency?: number;
  resume?: boolean;
  force?: boolean;
  name?: string;
  timeout?: number;
  startDeadline?: number;
  retries?: NonNullable<BatchOptions['retries']>;
  repeats?: number;
  json?: boolean;
}

export function registerBatch(program: Command, context: Context): void {
  const verb = program
    .command('batch')
    .description('run many tasks, each in a session of its own')
    .command('run')
    .description('run the tasks of a file: one JSON object a line, { id, script, spec?, files?, timeoutMs? }')
    .argument('<file.jsonl>', 'tasks; - is stdin')
    .addOption(
      new Option('--out <file>', 'results, one JSON object a line').env('SHELLFLEET_BATCH_OUT').makeOptionMandatory(),
    )
    .addOption(
      new Option('--concurrency <n>', 'tasks that run or wait at once')
        .env('SHELLFLEET_BATCH_CONCURRENCY')
        .argParser(parseCount),
    )
    .addOption(
      new Option('--resume', 'go on with the batch that wrote --out, also when it was killed').env(
        'SHELLFLEET_BATCH_RESUME',
      ),
    )
    .addOption(new Option('--force', 'replace --out when it exists').env('SHELLFLEET_BATCH_FORCE').conflicts('resume'))
    .addOption(
      new Option('--name <name>', 'of the batch, by which --resume finds it; kept in <out>.batch').env(
        'SHELLFLEET_BATCH_NAME',
      ),
    )
    .addOption(
      new Option('--timeout <time>', 'time limit of each script: 30s, 5m')
        .env('SHELLFLEET_BATCH_TIMEOUT')
        .argParser(parseDuration),
    )
    .addOption(
      new Option('--start-deadline <time>', 'time within which each script must start: 30s, 10m')
        .env('SHELLFLEET_BATCH_START_DEADLINE')
        .argParser(parseDuration),
    )
    .addOption(
      new Option('--retries <kinds>', 'how often a task runs again: infra=2,command=1')
        .env('SHELLFLEET_BATCH_RETRIES')
        .argParser(parseRetries),
    )
    .addOption(
      new Option('--repeats <n>', 'run each task so often, each time in a session of its own, as id#1, id#2, …')
        .env('SHELLFLEET_BATCH_REPEATS')
        .argParser(parseCount),
    );
  addSessionFlags(verb, context.config.env)
    .addOption(jsonFlag())
    .action((file: string, flags: Flags) => run(context, file, flags));
}

async function run(context: Context, file: string, flags: Flags): Promise<void> {
  const { terminal } = context;
  const { out, resume, force, name, timeout, startDeadline, retries, repeats = 1, concurrency } = flags;
  if (!resume && !force) refuseExisting(out);
  const common = { spec: toSpec(flags), timeoutMs: timeout };
  const { count, tasks } = await openTaskFile(file, common);
  await context.withFleet(async (fleet) => {
    using interrupt = listenForInterrupt(terminal);
    const batch = fleet.batch(tasks(), {
      ...{ out, overwrite: force === true, resumeFrom: resume ? out : undefined },
      ...{ ...common, concurrency, name, retries, repeats, signal: interrupt.signal },
      startDeadlineMs: startDeadline,
    });
    using _watch = watchBatch(terminal, fleet, batch, { startDeadlineMs: startDeadline, onHopeless: interrupt.giveUp });
    let done = 0;
    for await (const result of batch) {
      done++;
      if (flags.json) await terminal.json(result);
      else await terminal.line(toLine(result));
      terminal.progress(`${done + batch.totals.skipped} of ${count * repeats} tasks`);
    }
    const { tasks: all, skipped, success } = batch.totals;
    const failed = all - skipped - success;
    terminal.say(`${success} succeeded, ${failed} did not, ${skipped} had ended before. Results are in ${out}.`);
    if (interrupt.hopeless !== undefined) throw interrupt.hopeless;
    context.setExitCode(interrupt.signal.aborted ? EXIT_CANCELLED : failed > 0 ? 1 : 0);
  });
}

/** Refuses to overwrite an existing file. Pipes and devices are allowed. */
function refuseExisting(out: string): void {
  if (statSync(out, { throwIfNoEntry: false })?.isFile() !== true) return;
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `${out} exists and was not touched. --resume goes on with the batch that wrote it; --force replaces it.`,
    { path: out },
  );
}

function parseRetries(text: string): NonNullable<BatchOptions['retries']> {
  const retries: Record<string, number> = {};
  for (const part of text.split(',')) {
    const [, kind, times] = /^(infra|command)=(\d{1,3})$/.exec(part.trim()) ?? [];
    if (kind === undefined) throw new InvalidArgumentError('Give it as infra=N,command=N.');
    retries[kind] = Number(times);
  }
  return retries;
}

/** Handles Ctrl-C: the first cancels the running tasks and starts no more tasks, the second ends this process. */
function listenForInterrupt(terminal: CliOutput): Disposable & {
  signal: AbortSignal;
  readonly hopeless: ShellfleetError | undefined;
  giveUp(reason: ShellfleetError): void;
} {
  const stop = new AbortController();
  let hopeless: ShellfleetError | undefined;
  const interrupt = () => {
    if (stop.signal.aborted) process.exit(EXIT_CANCELLED);
    terminal.say('Cancelling the running tasks; Ctrl-C again leaves at once. --resume continues from here.');
    stop.abort();
  };
  process.on('SIGINT', interrupt);
  return {
    signal: stop.signal,
    get hopeless() {
      return hopeless;
    },
    giveUp(reason) {
      hopeless = reason;
      stop.abort();
    },
    [Symbol.dispose]: () => void process.off('SIGINT', interrupt),
  };
}

function toLine({ id, outcome, results, error, durationMs }: TaskResult): string {
  const exitCode = results.at(-1)?.exitCode;
  const detail = error?.message ?? (exitCode === null || exitCode === undefined ? '' : `exit ${exitCode}`);
  // JSON quoting keeps control characters in ids from outside away from the terminal.
  return [JSON.stringify(id).slice(1, -1), outcome, detail && JSON.stringify(detail).slice(1, -1), `${durationMs} ms`]
    .filter((part) => part !== '')
    .join('  ');
}
