import { LIMITS } from '@shellfleet/protocol';
import { z } from 'zod';
import { shorten } from '../commands/excerpt.ts';
import { withinAnswer } from '../commands/within-answer.ts';
import { defineMcpTool } from './define-tool.ts';

const json = z.record(z.string(), z.unknown());

export const listToolsTool = defineMcpTool({
  name: 'list_tools',
  title: 'List tools of the hosts',
  description: 'Lists functions that the hosts of the fleet offer besides shells. call_tool calls one.',
  input: z.strictObject({}),
  output: z.object({
    tools: z.array(
      z.object({
        name: z.string(),
        description: z.string().optional(),
        input_schema: json.describe('JSON Schema of the arguments.'),
        hosts: z.number().describe('Number of hosts that offer it.'),
      }),
    ),
  }),
  annotations: { readOnlyHint: true, openWorldHint: false },
  scope: 'read',
  async run(_args, { fleet }) {
    const offered = await fleet.tools.list();
    const tools = offered.map(({ name, description, inputSchema, hosts }) => ({
      ...{ name, input_schema: inputSchema, hosts: hosts.length },
      ...(description === undefined ? {} : { description }),
    }));
    const lines = tools.map(({ name, description = 'no description' }) => `${name}: ${description}`);
    return { structured: { tools }, text: lines.length === 0 ? 'No host offers a tool.' : lines.join('\n') };
  },
});

export const callToolTool = defineMcpTool({
  name: 'call_tool',
  title: 'Call a tool of a host',
  description: 'Calls a function that list_tools shows. A call that takes longer than about 40 s is cancelled.',
  input: z.strictObject({
    name: z.string(),
    args: json.default({}).describe('Arguments, as the input_schema of the tool says.'),
    timeout_ms: z
      .int()
      .min(1)
      .max(LIMITS.timeoutMs)
      .optional()
      .describe('Limit of the call. Default: that of the tool.'),
  }),
  output: z.object({
    ok: z.boolean(),
    output: z.unknown().optional(),
    truncated: z.boolean().describe('Whether the output is longer than a model should get, and is cut to text.'),
    error: z.object({ code: z.string(), message: z.string() }).optional(),
  }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  scope: 'submit',
  async run({ name, args, timeout_ms: timeoutMs }, call) {
    const why = `The tool ${name} did not return in time, so its call was cancelled.`;
    const result = await withinAnswer(call, why, (signal) => call.fleet.tools.call(name, args, { timeoutMs, signal }));
    if (!result.ok) {
      const { code, message } = result.error;
      const structured = { ok: false, truncated: false, error: { code, message } };
      return { structured, text: `Error ${code}: ${message}`, isError: true };
    }
    const whole = JSON.stringify(result.output) ?? 'null';
    const text = shorten(whole);
    const truncated = text !== whole;
    return { structured: { ok: true, truncated, output: truncated ? text : result.output }, text };
  },
});
