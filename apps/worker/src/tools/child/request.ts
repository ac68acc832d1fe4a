import { toolErrorSchema, toolNameSchema, toolOfferSchema } from '@shellfleet/protocol';
import { z } from 'zod';

// Between a worker and the process of a call, JSON both ways, one line first: the request on stdin (then the arguments), the report on
// descriptor 3 (then the output). What a tool prints goes elsewhere.

export const REPORT_DESCRIPTOR = 3;

export type ChildRequest =
  | { type: 'describe'; module: string }
  | { type: 'call'; module: string; exported: string; name: string; outputBytes: number };

/** A tool as its module defines it. */
const describedToolSchema = toolOfferSchema.extend({
  name: toolNameSchema,
  exported: z.string(),
  memoryBytes: z.number(),
  timeoutMs: z.number(),
  /** whether that is the most that a caller may ask for */
  timeoutIsMost: z.boolean(),
});
export type DescribedTool = z.infer<typeof describedToolSchema>;

export const childReportSchema = z.discriminatedUnion('type', [
  /** `dataBytes`: what the runtime itself takes, before a module is loaded */
  z.object({ type: z.literal('described'), tools: z.array(describedToolSchema), dataBytes: z.number() }),
  z.object({ type: z.literal('refused'), message: z.string() }),
  /** the output follows, as JSON */
  z.object({ type: z.literal('output') }),
  z.object({ type: z.literal('failed'), error: toolErrorSchema }),
]);
export type ChildReport = z.infer<typeof childReportSchema>;
