import { type DetachedBatch, type Fleet, ShellfleetError, type SubmitOptions } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { countMissing, describeMissing, describeProgress, describeTask } from './batch-line.ts';
import {
  isSpecial,
  needsFile,
  type ReportFlags,
  refuseReport,
  reportOptions,
  writeReport,
} from './batch-report-flags.ts';
import type { TaskFile } from './batch-tasks.ts';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { EXIT_CANCELLED, exitCodeOfBatch } from './exit-codes.ts';
import { FLAG_TEXTS } from './flag-texts.ts';
import type { CliOutput } from './terminal.ts';

interface AttachFlags extends ReportFlags {
  out: string;
  json?: boolean;
}

/** Adds the verbs about batches that workers drive. */
export function registerDetached(batch: Command, context: Context): void {
  batch
    .command('ls')
    .description('list the batches that workers drive or have driven')
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => list(context, flags));
  const attachVerb = batch
    .command('attach')
    .description(
      'fetch results and outputs of such a batch until it ends, and continue an earlier fetch; Ctrl-C only leaves it',
    )
    .argument('<name>')
    .addOption(
      new Option('--out <file>', FLAG_TEXTS.BatchOptions.out).env('SHELLFLEET_BATCH_OUT').makeOptionMandatory(),
    )
    .addOption(jsonFlag())
    .action((name: string, flags: AttachFlags) => attach(context, name, flags));
  for (const option of reportOptions()) attachVerb.addOption(option);
  batch
    .command('cancel')
    .description('end such a batch: running tasks end as cancellations, and no further task starts')
    .argument('<name>')
    .action((name: string) =>
      context.withFleet(async (fleet) => {
        const isEnding = await fleet.batches.cancel(name);
        context.terminal.say(isEnding ? `The batch ${name} ends.` : `The batch ${name} had ended.`);
      }),
    );
  batch
    .command('rm')
    .description('remove such a batch, which has ended, with its results')
    .argument('<name>')
    .action((name: string) =>
      context.withFleet(async (fleet) => {
        await fleet.batches.remove(name);
        context.terminal.say(`Removed the batch ${name}.`);
      }),
    );
}

/** Submits a batch, and prints its name. */
export async function submitDetached(
  { terminal }: Context,
  fleet: Fleet,
  tasks: TaskFile,
  options: SubmitOptions,
  json: boolean,
): Promise<void> {
  const batch = await fleet.batches.submit(tasks.tasks, options);
  if (json) await terminal.json(batch);
  else await terminal.line(batch.name);
  const { name } = batch;
  const stored = batch.tasks === 1 ? '1 task is' : `${batch.tasks} tasks are`;
  const fetches = `\`shellfleet batch attach ${name} --out results.jsonl\` fetches their results`;
  terminal.say(
    batch.state === 'ended'
      ? `The batch ${name} of these tasks has ended, and they do not run again. ${fetches}, and \`shellfleet batch rm ${name}\` makes the name free.`
      : `${stored} stored, and the fleet goes on without this process. ${fetches}.`,
  );
}

async function list({ terminal, withFleet }: Context, { json }: { json?: boolean }): Promise<void> {
  await withFleet(async (fleet) => {
    const batches = await fleet.batches.list();
    if (json) {
      for (const batch of batches) await terminal.json(batch);
      return;
    }
    await terminal.table([
      ['BATCH', 'STATE', 'TASKS', 'RESULTS', 'PASSED', 'HOST', 'SUBMITTED', 'BY'],
      ...batches.map(toRow),
    ]);
    if (batches.length === 0) terminal.say('No batch is stored. `shellfleet batch run --detach` submits one.');
  });
}

function toRow(batch: DetachedBatch): string[] {
  const { name, tasks, results, totals, progress, hostId = '', submittedAt, submittedBy } = batch;
  const passed = totals?.passed ?? progress?.passed ?? 0;
  return [name, describeState(batch), `${tasks}`, `${results}`, `${passed}`, hostId, submittedAt, submittedBy];
}

function describeState({ state, stoppedBy, cancelled, error }: DetachedBatch): string {
  if (state !== 'ended') return cancelled === undefined ? state : `${state}, cancelled`;
  if (error !== undefined) return `ended: ${error.code}`;
  return stoppedBy === undefined ? state : `ended: ${STOPPED[stoppedBy]}`;
}

const STOPPED = { signal: 'cancelled', failure: 'failure', 'batch-deadline': 'deadline' } as const;

async function attach(
  { terminal, withFleet, setExitCode }: Context,
  name: string,
  { out, json, ...flags }: AttachFlags,
): Promise<void> {
  if (flags.report !== undefined && isSpecial(out)) throw needsFile('--report', out);
  await refuseReport({ ...flags, out });
  await withFleet(async (fleet) => {
    using interrupt = listenForLeaving();
    const { signal } = interrupt;
    let missing = 0;
    try {
      const onProgress = (progress: Parameters<typeof describeProgress>[0]) =>
        terminal.progress(describeProgress(progress));
      for await (const result of fleet.batches.attach(name, { out, onProgress, signal })) {
        missing += countMissing(result);
        if (json) await terminal.json(result);
        else await terminal.line(describeTask(result));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      terminal.say(`Left the batch ${name}, which goes on. The same command continues ${out}.`);
      setExitCode(EXIT_CANCELLED);
      return;
    }
    setExitCode(sayEnd(terminal, await fleet.batches.get(name), { out, missing }));
    await writeReport(terminal, out, flags);
  });
}

/** Says how a batch has ended, and returns the exit code. */
function sayEnd(
  terminal: CliOutput,
  { name, totals, stoppedBy, cancelled }: DetachedBatch,
  { out, missing }: { out: string; missing: number },
): number {
  if (stoppedBy === 'signal') terminal.say(`The batch ${name} was ${cancelled ?? 'cancelled'}.`);
  if (stoppedBy === 'failure') terminal.say('The batch ended because a task did not pass.');
  if (stoppedBy === 'batch-deadline') terminal.say('The batch ended at its deadline.');
  const { tasks = 0, passed = 0, infrastructure = 0 } = totals ?? {};
  const because = infrastructure > 0 ? ` (${infrastructure} because of the infrastructure)` : '';
  terminal.say(
    `${passed} passed, ${tasks - passed} did not${because}.${describeMissing(missing)} Results are in ${out}.`,
  );
  return exitCodeOfBatch({ totals: { tasks, skipped: 0, passed }, stoppedBy });
}

/** Returns a signal that aborts at Ctrl-C. */
function listenForLeaving(): Disposable & { signal: AbortSignal } {
  const leave = new AbortController();
  const onInterrupt = () => {
    if (leave.signal.aborted) process.exit(EXIT_CANCELLED);
    leave.abort();
  };
  process.on('SIGINT', onInterrupt);
  return { signal: leave.signal, [Symbol.dispose]: () => void process.off('SIGINT', onInterrupt) };
}

/** Throws COMMAND_INVALID for flags that a batch without a file of results cannot have. */
export function refuseForDetached(given: Partial<Record<(typeof OF_RESULTS)[number], unknown>>): void {
  const flag = OF_RESULTS.find((name) => given[name] !== undefined);
  if (flag === undefined) return;
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `--${flag} needs the results, which --detach leaves in the fleet; \`shellfleet batch attach\` fetches them.`,
  );
}

const OF_RESULTS = ['out', 'resume', 'only', 'force', 'junit', 'report', 'compare'] as const;
