import type { z } from 'zod';

/** The definition of a tool, which a module exports. Its schemas are made with zod 4. */
export interface ToolDefinition<I extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> {
  /** Name under which the tool is called. Default: the name of the export. */
  name?: string;
  description?: string;
  input: I;
  output?: O;
  /** Default timeout of a call, and the longest that a caller may set. Default: 30 s, without a limit for callers. */
  timeoutMs?: number;
  /** Memory limit of the process of one call, in addition to the runtime's own memory. Default: 512 MiB. */
  memoryBytes?: number;
  run(args: z.output<I>, context: ToolContext): z.input<O> | Promise<z.input<O>>;
}

export interface ToolContext {
  /** Aborts when the call must end. One second later the process of the call is killed. */
  signal: AbortSignal;
}

/** Returns the definition with types of `run` inferred from the schemas. A module may also export the plain object. */
export function defineTool<I extends z.ZodType, O extends z.ZodType>(
  definition: ToolDefinition<I, O>,
): ToolDefinition<I, O> {
  return definition;
}
