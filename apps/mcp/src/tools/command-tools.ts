import { z } from 'zod';
import { commandArgument } from '../commands/command-of-call.ts';
import { writeText } from '../commands/write-text.ts';
import { defineMcpTool } from './define-tool.ts';

export const writeStdin = defineMcpTool({
  name: 'write_stdin',
  title: 'Write to a command',
  description: 'Writes to the standard input of a command that exec started with open_stdin. end: true closes it.',
  input: z.strictObject({
    command_id: commandArgument,
    data: z.string().optional().describe('Text to write. Give a line its line break.'),
    end: z.boolean().optional().describe('True closes the standard input after this text.'),
  }),
  output: z.object({
    written_bytes: z.number().describe('Fewer than the text has if the command does not read on.'),
    ended: z.boolean(),
  }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  scope: 'submit',
  async run({ command_id, data = '', end = false }, call) {
    const command = await call.fleet.command(command_id);
    const { bytes, written, ended } = await writeText(call, command, data, end);
    const rest = written < bytes ? ` of ${bytes}, and the command does not read on: write the rest later` : '';
    const text = `Wrote ${written} bytes${rest}${ended ? ' and closed the standard input' : ''}. Call poll for the output.`;
    return { structured: { written_bytes: written, ended }, text };
  },
});

export const cancelTool = defineMcpTool({
  name: 'cancel',
  title: 'Cancel a command',
  description: 'Stops a command that waits or runs. The shell of the session lives on, with its state.',
  input: z.strictObject({
    command_id: commandArgument,
    reason: z.string().max(1_024).optional().describe('Why, for the log.'),
  }),
  output: z.object({ cancelled: z.boolean().describe('False if the command had ended already.') }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: 'submit',
  async run({ command_id, reason }, { fleet }) {
    const command = await fleet.command(command_id);
    const cancelled = await command.cancel(reason);
    const text = cancelled ? `${command_id} is being cancelled. Call poll for its end.` : `${command_id} had ended.`;
    return { structured: { cancelled }, text };
  },
});
