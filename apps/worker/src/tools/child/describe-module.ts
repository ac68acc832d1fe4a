import { LIMITS, parseOrThrow, type ToolDefinition, toolNameSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { loadModule } from './load-module.ts';
import type { DescribedTool } from './request.ts';

const LEAST_MEMORY_BYTES = 16 * 1024 * 1024;
const DESCRIPTION_CHARS = 8_192;

const zodSchema = z.custom<z.ZodType>(
  (value) => typeof value === 'object' && value !== null && '_zod' in value,
  'must be a schema of zod 4',
);

const definitionSchema = z.object({
  name: toolNameSchema,
  description: z
    .string('must be a string')
    .max(DESCRIPTION_CHARS, `is over ${DESCRIPTION_CHARS} characters`)
    .optional(),
  input: zodSchema,
  output: zodSchema.optional(),
  timeoutMs: z.number().int().positive('must be positive').max(LIMITS.timeoutMs).optional(),
  memoryBytes: z.number().int().min(LEAST_MEMORY_BYTES, `must be at least ${LEAST_MEMORY_BYTES}`).optional(),
  run: z.custom((value) => typeof value === 'function', 'must be a function'),
});

/** Describes the tools of a module. Throws when a tool is invalid, or when there is none. */
export async function describeModule(path: string): Promise<DescribedTool[]> {
  const tools = await loadModule(path);
  if (tools.size === 0) throw new Error('it exports no tool ({ input, run, … })');
  return [...tools].map(([exported, definition]) => describeTool(exported, definition));
}

function describeTool(exported: string, definition: ToolDefinition): DescribedTool {
  const given = { ...definition, name: definition.name ?? exported };
  const { name, description, input, output, timeoutMs, memoryBytes } = parseOrThrow(
    definitionSchema,
    given,
    'COMMAND_INVALID',
    `The export ${exported}`,
  );
  return {
    exported,
    name,
    ...(description === undefined ? {} : { description }),
    inputSchema: z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }),
    ...(output === undefined ? {} : { outputSchema: z.toJSONSchema(output, { unrepresentable: 'any' }) }),
    timeoutMs: timeoutMs ?? LIMITS.toolTimeoutMs,
    timeoutIsMost: timeoutMs !== undefined,
    memoryBytes: memoryBytes ?? LIMITS.toolMemoryBytes,
  };
}
