import { setTimeout as delay } from 'node:timers/promises';
import { toPrintable } from '@shellfleet/protocol';
import { Argument, type Command } from 'commander';
import type { Context } from '../context.ts';
import { type Candidate, type Completion, completeWords } from './complete-words.ts';
import { nameCandidates } from './name-candidates.ts';
import { COMPLETION_SCRIPTS } from './shell-scripts.ts';

/** Longest wait for names of the fleet, because a person has pressed a key and waits. */
const DEADLINE_MS = 3_000;

export function registerCompletion(program: Command, context: Context): void {
  program
    .command('completion')
    .description('print a script that completes verbs, flags and names')
    .addArgument(new Argument('<shell>').choices(Object.keys(COMPLETION_SCRIPTS)))
    .action((shell: keyof typeof COMPLETION_SCRIPTS) => context.terminal.write('stdout', COMPLETION_SCRIPTS[shell]));
  program
    .command('__complete', { hidden: true })
    .argument('[word...]')
    .action((words: string[]) => complete(program, context, words));
}

/** Prints candidates for the last word. A failure leaves fewer candidates, or none. */
async function complete(program: Command, context: Context, words: readonly string[]): Promise<void> {
  const completion = completeWords(program, words);
  for (const candidate of completion.candidates) await print(context, candidate);
  if (completion.wants === undefined) return;
  const given = new AbortController();
  const inTime = await Promise.race([
    printNames(context, completion).then(() => true),
    delay(DEADLINE_MS, false, { signal: given.signal }),
  ]).catch(() => true);
  given.abort();
  // A connection that is still being made would keep this process alive.
  if (!inTime) process.exit(0);
}

async function printNames(context: Context, completion: Completion): Promise<void> {
  await context.withFleet(async (fleet) => {
    for await (const candidate of nameCandidates(fleet, completion)) await print(context, candidate);
  });
}

function print({ terminal }: Context, { value, description }: Candidate): Promise<void> {
  return terminal.line(`${toPrintable(value)}\t${toPrintable(description)}`);
}
