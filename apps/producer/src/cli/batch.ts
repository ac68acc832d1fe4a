import { statSync } from 'node:fs';
import { type Batch, type BatchOptions, ShellfleetError } from '@shellfleet/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { refuseForDetached, registerDetached, submitDetached } from './batch-detached.ts';
import { countMissing, describeMissing, describeProgress, describeTask } from './batch-line.ts';
import {
  isSpecial,
  needsFile,
  type ReportFlags,
  refuseReport,
  reportOptions,
  writeReport,
} from './batch-report-flags.ts';
import { openTaskFile } from './batch-tasks.ts';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { EXIT_CANCELLED, exitCodeOfBatch } from './exit-codes.ts';
import { FLAG_TEXTS } from './flag-texts.ts';
import { addSessionFlags, type SessionFlags, toSpec } from './session-flags.ts';
import type { CliOutput } from './terminal.ts';
import { parseCount, parseDuration } from './units.ts';
import { watchBatch } from './watch-batch.ts';

interface Flags extends SessionFlags, ReportFlags {
  out?: string;
  detach?: boolean;
  concurrency?: number;
  resume?: boolean;
  only?: 'failed';
  force?: boolean;
  name?: string;
  timeout?: number;
  startDeadline?: number;
  taskDeadline?: number;
  deadline?: number;
  stopOnFailure?: boolean;
  retries?: NonNullable<BatchOptions['retries']>;
  repeats?: number;
  junit?: string;
  json?: boolean;
}

export function registerBatch(program: Command, context: Context): void {
  const batch = program.command('batch').description('run many tasks, each in a session of its own');
  const verb = batch
    .command('run')
    .description(
      'run the tasks of a file: { id, script, spec?, files?, setup?, outputs?, grade?, timeoutMs?, deadlineMs? }',
    )
    .argument('<file>', 'JSON lines, a YAML list, or a program whose default export generates tasks; - is stdin');
  for (const option of [...fileOptions(), ...runOptions()]) verb.addOption(option);
  addSessionFlags(verb, context.config.env)
    .addOption(jsonFlag())
    .action((file: string, flags: Flags) => {
      // A default of the environment is for batches whose results this process writes.
      const { out: _out, ...others } = flags;
      const isAsked = verb.getOptionValueSource('out') === 'cli';
      if (flags.detach) return runDetached(context, file, isAsked ? flags : others);
      const { out } = flags;
      return out === undefined ? verb.error(OUT_IS_MISSING) : run(context, file, { ...flags, out });
    });
  registerDetached(batch, context);
}

const { BatchOptions: options } = FLAG_TEXTS;

const OUT_IS_MISSING = "error: required option '--out <file>' not specified, and no --detach";

/** Flags about the files of a batch. Each has an environment variable. */
function fileOptions(): Option[] {
  return [
    new Option('--out <file>', options.out).env('SHELLFLEET_BATCH_OUT'),
    new Option('--detach', 'let workers drive the batch, without --out: `batch attach` fetches the results').env(
      'SHELLFLEET_BATCH_DETACH',
    ),
    new Option('--resume', options.resumeFrom).env('SHELLFLEET_BATCH_RESUME'),
    new Option('--only <which>', options.only).env('SHELLFLEET_BATCH_ONLY').choices(['failed']),
    new Option('--force', options.overwrite).env('SHELLFLEET_BATCH_FORCE').conflicts('resume'),
    new Option('--junit <file>', 'write the results also as a file of JUnit, at the end').env('SHELLFLEET_BATCH_JUNIT'),
    ...reportOptions(),
    new Option('--name <name>', options.name).env('SHELLFLEET_BATCH_NAME'),
  ];
}

/** Flags about how tasks are run. Each has an environment variable. */
function runOptions(): Option[] {
  return [
    new Option('--concurrency <n>', options.concurrency).env('SHELLFLEET_BATCH_CONCURRENCY').argParser(parseCount),
    new Option('--timeout <time>', options.timeoutMs).env('SHELLFLEET_BATCH_TIMEOUT').argParser(parseDuration),
    new Option('--start-deadline <time>', options.startDeadlineMs)
      .env('SHELLFLEET_BATCH_START_DEADLINE')
      .argParser(parseDuration),
    new Option('--task-deadline <time>', options.taskDeadlineMs)
      .env('SHELLFLEET_BATCH_TASK_DEADLINE')
      .argParser(parseDuration),
    new Option('--deadline <time>', options.deadlineMs).env('SHELLFLEET_BATCH_DEADLINE').argParser(parseDuration),
    new Option('--stop-on-failure', options.stopOnFailure).env('SHELLFLEET_BATCH_STOP_ON_FAILURE'),
    new Option('--retries <kinds>', options.retries).env('SHELLFLEET_BATCH_RETRIES').argParser(parseRetries),
    new Option('--repeats <n>', options.repeats).env('SHELLFLEET_BATCH_REPEATS').argParser(parseCount),
  ];
}

/** Returns what both kinds of batches are run with. */
function toOptions({ name, timeout, startDeadline, retries, repeats, concurrency, ...flags }: Flags) {
  return {
    common: { spec: toSpec(flags), timeoutMs: timeout, repeats },
    others: {
      ...{ concurrency, name, retries, startDeadlineMs: startDeadline },
      ...{ taskDeadlineMs: flags.taskDeadline, deadlineMs: flags.deadline, stopOnFailure: flags.stopOnFailure },
    },
  };
}

async function runDetached(context: Context, file: string, flags: Flags): Promise<void> {
  refuseForDetached(flags);
  const { common, others } = toOptions(flags);
  await using tasks = await openTaskFile(file, common);
  const source = { count: tasks.count, source: { file, digest: tasks.digest } };
  await context.withFleet((fleet) =>
    submitDetached(context, fleet, tasks, { ...common, ...others, ...source }, flags.json === true),
  );
}

async function run(context: Context, file: string, flags: Flags & { out: string }): Promise<void> {
  const { terminal } = context;
  const { out, resume, force, only, name, startDeadline, junit, report } = flags;
  if (!resume && !force) refuseExisting(out);
  if (only !== undefined && !resume) throw onlyWithResume();
  if (junit !== undefined && isSpecial(out)) throw needsFile('--junit', out);
  if (report !== undefined && isSpecial(out)) throw needsFile('--report', out);
  await refuseReport(flags);
  const { common, others } = toOptions(flags);
  await using tasks = await openTaskFile(file, common);
  await context.withFleet(async (fleet) => {
    using interrupt = listenForInterrupt(terminal);
    const batch = fleet.batch(tasks.tasks, {
      ...{ out, overwrite: force === true, resumeFrom: resume ? out : undefined, only },
      ...{ ...common, ...others, signal: interrupt.signal },
      ...{ count: tasks.count, source: { file, digest: tasks.digest } },
    });
    using _watch = watchBatch(terminal, fleet, batch, { startDeadlineMs: startDeadline, onHopeless: interrupt.giveUp });
    batch.on('progress', (progress) => terminal.progress(describeProgress(progress)));
    let missing = 0;
    for await (const result of batch) {
      missing += countMissing(result);
      if (flags.json) await terminal.json(result);
      else await terminal.line(describeTask(result));
      terminal.progress(describeProgress(batch.progress));
    }
    if (junit !== undefined) {
      const { writeJunit } = await import('./batch-junit.ts');
      await writeJunit(out, junit, name ?? file);
    }
    sayEnd(terminal, batch, { out, missing });
    await writeReport(terminal, out, flags);
    if (interrupt.hopeless !== undefined) throw interrupt.hopeless;
    context.setExitCode(exitCodeOfBatch(batch));
  });
}

function sayEnd(
  terminal: CliOutput,
  { totals, stoppedBy }: Batch,
  { out, missing }: { out: string; missing: number },
): void {
  const { tasks, skipped, passed, infrastructure } = totals;
  const others = tasks - skipped - passed;
  const because = infrastructure > 0 ? ` (${infrastructure} because of the infrastructure)` : '';
  if (stoppedBy === 'failure') terminal.say('The batch ended because a task did not pass. --resume continues it.');
  if (stoppedBy === 'batch-deadline') terminal.say('The batch ended at its deadline. --resume continues it.');
  const counts = `${passed} passed, ${others} did not${because}, ${skipped} had ended before.`;
  terminal.say(`${counts}${describeMissing(missing)} Results are in ${out}.`);
}

function onlyWithResume(): ShellfleetError {
  return new ShellfleetError('COMMAND_INVALID', '--only needs --resume, which reads the results of the earlier run.');
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
