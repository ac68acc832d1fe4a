import { type Result, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';

const printedSchema = z.union([
  z.number().transform((score) => ({ pass: undefined, score })),
  z.object({ pass: z.boolean().optional(), score: z.number().optional() }),
]);

/**
 * Reads what a grade decided. It passes with exit code 0, unless the last line of its stdout is JSON with `"pass":
 * false`. The score is that line when it is a number, or its `score`; else 1 or 0.
 */
export function readGrade({ outcome, stdout }: Result): { passed: boolean; score: number } {
  const last = stdout.trimEnd().split('\n').at(-1) ?? '';
  const printed = printedSchema.safeParse(tryJson(last));
  const passed = outcome === 'success' && printed.data?.pass !== false;
  return { passed, score: printed.data?.score ?? (passed ? 1 : 0) };
}
