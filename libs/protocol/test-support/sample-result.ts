import type { Outcome } from '../src/result.ts';
import { newResult, type ResultEnd, type WireResult } from '../src/wire-result.ts';

const ENDS: Record<Outcome, ResultEnd> = {
  success: { outcome: 'success', exitCode: 0, reason: 'exited' },
  failure: { outcome: 'failure', exitCode: 1, reason: 'exited' },
  timeout: { outcome: 'timeout', reason: 'wall' },
  cancellation: { outcome: 'cancellation', reason: 'cancelled' },
  denial: { outcome: 'denial', reason: 'rules' },
  blocked: { outcome: 'blocked', exitCode: 0, reason: 'exited', blocked: { type: 'email', reason: 'matched' } },
  lost: { outcome: 'lost', reason: 'host-lost' },
  error: { outcome: 'error', error: { code: 'INTERNAL', message: 'm', retryable: false, context: {} } },
};

/** Returns a valid Result of an outcome. `own` replaces fields. */
export function sampleResult<O extends Outcome>(
  outcome: O,
  own: Partial<Extract<WireResult, { outcome: O }>> = {},
): WireResult {
  return { ...newResult(ENDS[outcome]), ...own } as WireResult;
}
