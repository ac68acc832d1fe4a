import { z } from 'zod';
import type { Receipt, ReceiptPart, ReceiptStep } from './receipt.ts';
import type { WireResult } from './wire-result.ts';

/** Causes of a wait between the acceptance of a command and its last start. */
const WAITS = ['slot', 'earlier', 'approval', 'image', 'opening', 'attempt', 'waiting'] as const;
export type Wait = (typeof WAITS)[number];

const MOST_MS = 8_640_000_000_000_000;
const ms = z.number().int().min(0).max(MOST_MS);

/** A receipt as stored in a Result. The `timings` of the Result and the id of its event have the rest. */
export const wireReceiptSchema = z.object({
  /** Time of the acceptance, by the clock of Redis. */
  acceptedAt: ms,
  /** Present when the command was never started. */
  unstarted: z.literal(true).optional(),
  /** Waits before the start, in their order. The time before the start that they leave is a wait without a cause. */
  waits: z
    .array(z.tuple([z.enum(WAITS), ms]))
    .max(32)
    .optional(),
  /** Time between the start and the run in which a shell was opened: another one, or that of a wider sandbox. */
  openingMs: ms.optional(),
  firstOutputMs: ms.optional(),
  /** Time after the run in which a person was asked about a second attempt, which did not take place. */
  askedMs: ms.optional(),
  /** Time of the event. The reader sets it. */
  storedAt: ms.optional(),
});
export type WireReceipt = z.infer<typeof wireReceiptSchema>;

/** Adds the time of the event that has the Result. */
export function withStoredAt<R extends WireResult>(result: R, event: string): R {
  const storedAt = ms.safeParse(Number.parseInt(event, 10)).data;
  if (result.receipt === undefined || storedAt === undefined) return result;
  return { ...result, receipt: { ...result.receipt, storedAt } };
}

/** Returns the receipt for the callers of the SDK, or undefined if the Result has none. */
export function toReceipt({ receipt, timings, outcome }: WireResult): Receipt | undefined {
  if (receipt === undefined) return undefined;
  const { acceptedAt, unstarted, waits = [], openingMs = 0, firstOutputMs, askedMs = 0 } = receipt;
  const { queuedMs, startMs, runMs } = timings;
  const waitedMs = queuedMs + startMs;
  const explainedMs = waits.reduce((sum, [, length]) => sum + length, 0);
  const knownMs = waitedMs + openingMs + runMs + askedMs;
  const storedAt = Math.max(acceptedAt, receipt.storedAt ?? acceptedAt + knownMs);
  const totalMs = storedAt - acceptedAt;
  const hasEnd = unstarted === true || runMs > 0 || !['lost', 'error', 'cancellation'].includes(outcome);
  const parts: [ReceiptStep, number][] = [
    ...waits,
    ['waiting', waitedMs - explainedMs],
    ['opening', openingMs],
    ['running', runMs],
    ['approval', askedMs],
    [hasEnd ? 'storing' : 'unknown', totalMs - knownMs],
  ];
  return {
    acceptedAt: toTime(acceptedAt),
    ...(unstarted !== true && { startedAt: toTime(acceptedAt + waitedMs) }),
    storedAt: toTime(storedAt),
    totalMs,
    ...(firstOutputMs !== undefined && { firstOutputMs }),
    parts: parts.flatMap(toPart),
  };
}

const OF_THE_HOST: readonly ReceiptStep[] = ['image', 'opening', 'running'];

function toPart([step, length]: [ReceiptStep, number]): ReceiptPart[] {
  return length <= 0 ? [] : [{ step, ms: length, clock: OF_THE_HOST.includes(step) ? 'host' : 'redis' }];
}

const toTime = (at: number) => new Date(Math.min(at, MOST_MS)).toISOString();
