import type { McpServer, StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import { toIssueText } from '@shellfleet/protocol';
import { z } from 'zod';
import { rulesFor } from './instructions.ts';

/** Offers prompts that explain the sandbox to models whose clients do not pass the instructions on. */
export function addPrompts(server: McpServer): void {
  server.registerPrompt(
    'work_in_sandbox',
    {
      title: 'Work in the sandbox',
      description: 'Explains sessions, long commands, cut output, lost state, the sandbox and how to ask to leave it.',
      argsSchema: worded(z.object({ task: z.string().optional().describe('What to do.') })),
    },
    ({ task }) => ({ messages: [{ role: 'user', content: { type: 'text', text: rulesFor(task) } }] }),
  );
  server.registerPrompt(
    'continue_command',
    {
      title: 'Continue a command',
      description: 'Follows a command that runs already to its end, and reports what it did.',
      argsSchema: worded(z.object({ command_id: z.string().describe('Id of the command.') })),
    },
    ({ command_id }) => {
      const text = `Call poll with command_id "${command_id}" until its status is "ended", each time with the last \`next\` as since. Do not start the command again. Then report its outcome, and what its output says.`;
      return { messages: [{ role: 'user', content: { type: 'text', text } }] };
    },
  );
}

/** Returns a schema whose refusals are in our words. The library of MCP sends them to the client. */
function worded<T extends z.ZodObject>(schema: T): StandardSchemaWithJSON<z.input<T>, z.output<T>> {
  const standard = schema['~standard'] as unknown as StandardSchemaWithJSON<z.input<T>, z.output<T>>['~standard'];
  const validate = (value: unknown) => {
    const { data, error } = schema.safeParse(value, { error: toIssueText });
    return error === undefined ? { value: data as z.output<T> } : { issues: error.issues };
  };
  return { '~standard': { ...standard, validate } };
}
