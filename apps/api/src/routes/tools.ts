import { toolCallIdSchema, toolInfoSchema, toolResultSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { onceClosed } from '../streams/open-work.ts';
import { sendEvents } from '../streams/send-events.ts';
import { route } from './route.ts';

const list = route({
  method: 'GET',
  path: '/tools',
  scope: 'read',
  operationId: 'listTools',
  summary: 'Lists the tools that live hosts offer, by name',
  replies: { 200: { description: 'The tools.', schema: z.object({ items: z.array(toolInfoSchema) }) } },
  async handler({ fleet }) {
    return { items: await fleet.tools.list() };
  },
});

const watch = route({
  method: 'GET',
  path: '/tools/events',
  scope: 'read',
  operationId: 'watchTools',
  summary: 'Streams the tools that are offered, and the calls of the tenant',
  description: 'Begins with `tool.added` for every tool, then has each change and call.',
  replies: { 200: { description: 'The events, as ToolEvent of the SDK.', type: 'text/event-stream' } },
  async handler(call) {
    return sendEvents(call, async function* (signal) {
      for await (const event of call.fleet.tools.watch({ signal })) yield { type: event.type, data: event };
    });
  },
});

const callTool = route({
  method: 'POST',
  path: '/tools/{name}/call',
  scope: 'submit',
  operationId: 'callTool',
  summary: 'Calls a tool, and waits for its result',
  description: 'A call that fails is a result with `ok: false`. A client that closes the connection cancels the call.',
  params: { name: z.string().min(1).max(64).describe('Name of the tool.') },
  body: z.strictObject({
    args: z.unknown().optional().describe('Arguments, as the input schema of the tool describes them.'),
    timeoutMs: z.number().int().optional().describe('Limit from the start of the process.'),
    startDeadlineMs: z.number().int().optional().describe('Time within which the call must start.'),
    callId: toolCallIdSchema.optional().describe('Name of the call, which its result and its events have.'),
  }),
  bodyOptional: true,
  replies: { 200: { description: 'The result.', schema: toolResultSchema } },
  async handler({ params, body: { args, ...options } = {}, fleet, reply }) {
    // A call runs in a process that ends with it, so a server that stops waits for the result.
    const left = new AbortController();
    onceClosed(reply.raw, () => left.abort());
    return fleet.tools.call(params.name, args, { ...options, signal: left.signal });
  },
});

export const toolRoutes = [list, watch, callTool];
