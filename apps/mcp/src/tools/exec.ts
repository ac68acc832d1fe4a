import { LIMITS } from '@shellfleet/protocol';
import { z } from 'zod';
import { answerAbout, commandAnswerSchema } from '../commands/command-answer.ts';
import { followCommand } from '../commands/follow-command.ts';
import { openSessionOf, sessionArgument } from '../commands/session-of-call.ts';
import { defineMcpTool } from './define-tool.ts';
import { submitOnce } from './submit-once.ts';

/** Time in ms that `exec` waits for a command by default. */
const YIELD_MS = 30_000;

export const execArguments = z.strictObject({
  session: sessionArgument,
  command: z.string().describe('Script for the shell of the session: one line or many.'),
  timeout_ms: z
    .int()
    .min(1)
    .max(LIMITS.timeoutMs)
    .optional()
    .describe('Time limit of the command, from its start. Default: 10 minutes. What it printed until then is kept.'),
  yield_ms: z
    .int()
    .min(0)
    .max(LIMITS.timeoutMs)
    .default(YIELD_MS)
    .describe('How long to wait for the end of the command, at most about 40 s. It continues to run afterwards.'),
  cwd: z.string().optional().describe('Working directory of this command alone.'),
  env: z.record(z.string(), z.string()).optional().describe('Environment variables of this command alone.'),
  stdin: z.string().optional().describe('Standard input. Default: empty.'),
  open_stdin: z.boolean().optional().describe('True keeps standard input open for write_stdin.'),
  escalate: z
    .string()
    .optional()
    .describe(
      'Asks to run this command outside the sandbox. Say why, in one sentence: a person reads it. Use it only when the sandbox prevents what the task needs.',
    ),
});

export const exec = defineMcpTool({
  name: 'exec',
  title: 'Run a command',
  description:
    'Runs a script in a persistent shell and returns its output and exit code. Directory, variables, functions and background processes last from call to call. A command that takes long is answered with its id and continues to run: call poll with the id. Commands of a session run one after another.',
  input: execArguments,
  output: commandAnswerSchema,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  scope: 'submit',
  async run(args, call) {
    const session = await openSessionOf(call, args.session);
    const command = await submitOnce(call, session, args);
    const followed = await followCommand(call, session, command, args.yield_ms);
    return followed.type === 'asks' ? followed.request : answerAbout(call, session, command, followed);
  },
});
