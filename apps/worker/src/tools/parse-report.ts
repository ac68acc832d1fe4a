import { toolErrorSchema, toolOfferSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import type { ChildReport } from './child/request.ts';

/** A report may be large where it describes a module; never its output, which follows it. */
export const REPORT_BYTES = 4_194_304;

const reportSchema: z.ZodType<ChildReport> = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('described'),
    tools: z.array(
      toolOfferSchema.extend({ exported: z.string(), memoryBytes: z.number(), timeoutIsMost: z.boolean() }),
    ),
    dataBytes: z.number(),
  }),
  z.object({ type: z.literal('refused'), message: z.string() }),
  z.object({ type: z.literal('output'), redacted: z.boolean() }),
  z.object({ type: z.literal('failed'), error: toolErrorSchema }),
]);

/** What a process reported, or undefined when that is no report: it is outside of this process, and may say anything. */
export function parseReport(bytes: Buffer): { report: ChildReport; body: Buffer } | undefined {
  const end = bytes.indexOf(0x0a);
  if (end < 0 || end > REPORT_BYTES) return undefined;
  try {
    const report = reportSchema.parse(JSON.parse(bytes.toString('utf8', 0, end)));
    return { report, body: bytes.subarray(end + 1) };
  } catch {
    return undefined;
  }
}
