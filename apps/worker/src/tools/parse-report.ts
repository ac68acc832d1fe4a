import { toolErrorSchema, toolOfferSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { BEGUN, type ChildReport } from './child/request.ts';

/** Limit for a report, which may describe a whole module. The output after it has a separate limit. */
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

/** Parses a report without its first byte. Undefined when invalid, since the process runs foreign code. */
export function parseReport(bytes: Buffer): { report: ChildReport; body: Buffer } | undefined {
  if (bytes[0] !== BEGUN.charCodeAt(0)) return undefined;
  const end = bytes.indexOf(0x0a);
  if (end < 0 || end > REPORT_BYTES) return undefined;
  try {
    const report = reportSchema.parse(JSON.parse(bytes.toString('utf8', 1, end)));
    return { report, body: bytes.subarray(end + 1) };
  } catch {
    return undefined;
  }
}
