import { type Command, markStderr, type Result, type Session, toModelText } from '@shellfleet/client';
import { OUTCOMES } from '@shellfleet/protocol';
import { z } from 'zod';
import { MODEL_OUTPUT } from '../settings.ts';
import type { ToolAnswer } from '../tools/define-tool.ts';
import type { ToolCall } from '../tools/tool-call.ts';
import { type CommandState, OPEN_STATES } from './command-state.ts';
import { type OutputExcerpt, readExcerpt, shorten } from './excerpt.ts';
import type { Followed } from './follow-command.ts';

/** What `exec` and `poll` return about a command. */
export const commandAnswerSchema = z.object({
  command_id: z.string().describe('Id of the command, for poll, write_stdin and cancel.'),
  session: z.string().describe('Session of the command.'),
  status: z.enum(['ended', ...OPEN_STATES]).describe('Whether the command has ended, and what it does otherwise.'),
  stdout: z.string().describe('Output since the position that was given, or all of it; long output is cut.'),
  stderr: z.string().describe('The same of stderr.'),
  truncated: z.boolean().describe('Whether a part of the output is missing above.'),
  next: z.string().optional().describe('Position for `since` of the next poll.'),
  waits_for: z.string().optional().describe('Why the command does not run yet.'),
  question: z.string().optional().describe('Id of the question that a person has to answer.'),
  outcome: z.enum(OUTCOMES).optional().describe('How the command ended.'),
  exit_code: z.number().nullable().optional().describe('Exit code, or null if there is none.'),
  reason: z.string().optional().describe('What ended the command.'),
  run_ms: z.number().optional().describe('How long the command ran.'),
  shell: z
    .object({ state: z.enum(['kept', 'partial', 'lost']), reason: z.string().optional() })
    .optional()
    .describe('Whether variables, directory and background processes are still there.'),
  error: z.object({ code: z.string(), message: z.string(), retryable: z.boolean() }).optional(),
});

type CommandAnswer = ToolAnswer<z.output<typeof commandAnswerSchema>>;

/** Describes how far a command has come, with its output after `since`. */
export async function answerAbout(
  call: ToolCall,
  session: Session,
  command: Command,
  followed: Exclude<Followed, { type: 'asks' }>,
  since?: string,
): Promise<CommandAnswer> {
  if (followed.type === 'ended' && since === undefined) return ofResult(toShort(followed.result));
  const output = await readExcerpt(command, since, call.signal);
  if (followed.type === 'ended') return ofResult(withOutput(followed.result, output), output.next);
  const question =
    followed.state.status === 'waiting for approval' ? await call.person.question(session, command) : undefined;
  return ofOpen(command, followed, output, question);
}

const BEGUN: CommandState = { status: 'running' };

/** Answers of these outcomes are errors for a client. A command that failed is no error: its output is what matters. */
const NOT_RUN = ['denial', 'lost', 'error'];

function ofResult(result: Result, next?: string): CommandAnswer {
  const { outcome, exitCode, reason, shell, error, truncated, timings } = result;
  return {
    text: toModelText(result, { output: { keep: MODEL_OUTPUT.keep } }).text,
    isError: NOT_RUN.includes(outcome),
    structured: {
      ...{ command_id: result.commandId, session: result.sessionId, status: 'ended' },
      ...{ stdout: result.stdout, stderr: result.stderr, truncated: truncated.bytes || truncated.lines },
      ...(next === undefined ? {} : { next }),
      ...{ outcome, exit_code: exitCode, run_ms: timings.runMs },
      ...(reason === undefined ? {} : { reason }),
      shell: { state: shell.state, ...(shell.reason === undefined ? {} : { reason: shell.reason }) },
      ...(error === undefined
        ? {}
        : { error: { code: error.code, message: error.message, retryable: error.retryable } }),
    },
  };
}

function ofOpen(
  { id, sessionId }: Command,
  { state, waitedMs }: { state: CommandState; waitedMs: number },
  output: OutputExcerpt,
  question: { id: string; words: string } | undefined,
): CommandAnswer {
  // The command may have begun after its state was read.
  const { status, waitsFor } = state.status === 'queued' && output.bytes > 0 ? BEGUN : state;
  const seconds = (waitedMs / 1_000).toFixed(1);
  const isOver = question === undefined && status === 'waiting for approval';
  const why = question?.words ?? (waitsFor === undefined || isOver ? '' : ` It waits for ${waitsFor}.`);
  const texts = { ...output, truncated: { bytes: output.isCut, lines: false } };
  const shown = markStderr(texts, MODEL_OUTPUT.keep).trimEnd();
  const since = output.next === undefined ? '' : ` and since: "${output.next}"`;
  return {
    text: [
      `Command ${id} is ${status} after ${seconds} s.${why}`,
      ...(shown === '' ? [] : [`Output so far:\n${shown}`]),
      `Call poll with command_id: "${id}"${since} to wait for it.`,
    ].join('\n\n'),
    structured: {
      ...{ command_id: id, session: sessionId, status },
      ...{ stdout: output.stdout, stderr: output.stderr, truncated: output.isCut },
      ...(output.next === undefined ? {} : { next: output.next }),
      ...(waitsFor === undefined ? {} : { waits_for: waitsFor }),
      ...(question === undefined ? {} : { question: question.id }),
    },
  };
}

/** Cuts a Result of a session whose output is longer than a model should get. */
function toShort(result: Result): Result {
  const [stdout, stderr] = [shorten(result.stdout), shorten(result.stderr)];
  if (stdout === result.stdout && stderr === result.stderr) return result;
  return { ...result, stdout, stderr, output: shorten(result.output), truncated: { ...result.truncated, bytes: true } };
}

/** Returns a Result with other output. Output that a rule withholds stays withheld. */
function withOutput(result: Result, { stdout, stderr, output, isCut }: OutputExcerpt): Result {
  if (result.blocked !== undefined) return result;
  return { ...result, stdout, stderr, output, truncated: { bytes: isCut, lines: false } };
}
