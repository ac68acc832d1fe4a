import type { z } from 'zod';

/** What a module exports to offer a function to the fleet. `zod` of version 4 makes the schemas. */
export interface ToolDefinition<I extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> {
  /** Default: the name of the export. */
  name?: string;
  description?: string;
  input: I;
  output?: O;
  /** What a call has without a say of its caller's, and the most that a caller may ask for; default: 30 s, and any. */
  timeoutMs?: number;
  /** Of the process of one call, above what the runtime itself takes; default: 512 MiB. */
  memoryBytes?: number;
  run(args: z.output<I>, context: ToolContext): z.input<O> | Promise<z.input<O>>;
}

export interface ToolContext {
  /** Aborts when the call is to end; a second later its process is gone. */
  signal: AbortSignal;
}

/** Gives an export the types of its schemas. The plain object does as well. */
export function defineTool<I extends z.ZodType, O extends z.ZodType>(
  definition: ToolDefinition<I, O>,
): ToolDefinition<I, O> {
  return definition;
}
