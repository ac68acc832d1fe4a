import { LIMITS } from '@shellfleet/protocol';
import { z } from 'zod';
import { answerAbout, commandAnswerSchema } from '../commands/command-answer.ts';
import { commandArgument, findCommandOf } from '../commands/command-of-call.ts';
import { followCommand } from '../commands/follow-command.ts';
import { defineMcpTool } from './define-tool.ts';

/** Time in ms that `poll` waits for the end by default. */
const WAIT_MS = 10_000;

export const poll = defineMcpTool({
  name: 'poll',
  title: 'Wait for a command',
  description:
    'Waits for a command that exec started, and returns its output since a position. Returns the moment the command ends.',
  input: z.strictObject({
    command_id: commandArgument,
    since: z.string().optional().describe('The `next` of the last answer: only later output is returned.'),
    wait_ms: z
      .int()
      .min(0)
      .max(LIMITS.timeoutMs)
      .default(WAIT_MS)
      .describe('How long to wait for the end, at most about 40 s. 0 returns at once.'),
  }),
  output: commandAnswerSchema,
  annotations: { readOnlyHint: true, openWorldHint: false },
  scope: 'read',
  async run({ command_id, since, wait_ms }, call) {
    const { session, command } = await findCommandOf(call, command_id);
    const followed = await followCommand(call, session, command, wait_ms);
    return followed.type === 'asks' ? followed.request : answerAbout(call, session, command, followed, since);
  },
});
