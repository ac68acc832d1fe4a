import {
  type CallToolResult,
  type InputRequiredResult,
  isInputRequiredResult,
  type McpServer,
  type ServerContext,
  type StandardSchemaWithJSON,
  type ToolAnnotations,
} from '@modelcontextprotocol/server';
import { parseOrThrow, type Scope } from '@shellfleet/protocol';
import type { z } from 'zod';
import type { McpSettings } from '../settings.ts';
import type { ToolCall } from './tool-call.ts';
import { toToolError } from './tool-error.ts';

/** What a tool returns: data of its output schema, and the same for a model to read. */
export interface ToolAnswer<Output> {
  structured: Output;
  text: string;
  isError?: boolean;
}

/** A tool of the server. */
export interface McpTool<Input extends z.ZodObject, Output extends z.ZodObject> {
  name: string;
  title: string;
  description: string;
  input: Input;
  output: Output;
  annotations: ToolAnnotations;
  /** What the caller must be allowed to do. */
  scope: Scope;
  run(args: z.output<Input>, call: ToolCall): Promise<ToolAnswer<z.input<Output>> | InputRequiredResult>;
}

/** Opens the fleet of a call. Rejects with UNAUTHORIZED without the scope. */
export type OpenCall = (context: ServerContext, scope: Scope) => Promise<ToolCall>;

/** Adds a tool to a server. Every failure of a call is a result with our code, never an error of the protocol. */
export type AddTool = (server: McpServer, open: OpenCall, log: McpSettings['log']) => void;

export function defineMcpTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: McpTool<Input, Output>,
): AddTool {
  const { name, title, description, input, output, annotations, scope } = tool;
  const config = { title, description, inputSchema: unchecked(input), outputSchema: output, annotations };
  return (server, open, log) => {
    server.registerTool(name, config, async (args, context) => {
      try {
        const parsed = parseOrThrow(input, args, 'COMMAND_INVALID', name);
        const answer = await tool.run(parsed, await open(context, scope));
        return isInputRequiredResult(answer) ? answer : toResult(answer);
      } catch (error) {
        // Nobody reads the answer to a call that was cancelled, or whose connection is lost.
        return toToolError(error, context.mcpReq.signal.aborted ? () => {} : log);
      }
    });
  };
}

function toResult<Output>({ structured, text, isError }: ToolAnswer<Output>): CallToolResult {
  return {
    content: [{ type: 'text', text }],
    structuredContent: structured as Record<string, unknown>,
    ...(isError ? { isError } : {}),
  };
}

/** Returns a schema that describes arguments and accepts any, so that invalid ones get the code COMMAND_INVALID. */
function unchecked(schema: z.ZodObject): StandardSchemaWithJSON<unknown, unknown> {
  const standard = schema['~standard'] as unknown as StandardSchemaWithJSON['~standard'];
  return { '~standard': { ...standard, validate: (value) => ({ value }) } };
}
