import { constants } from 'node:os';
import { ensureShellfleetError, type Outcome, type Result } from '@shellfleet/protocol';

export const USAGE = 2;
const TIMEOUT = 124;
export const OURS = 125;
export const DENIED = 126;
export const CANCELLED = 130;
/** Left by a signal, as a shell says it. */
export const exitCodeOfSignal = (signal: NodeJS.Signals) => exitCodeOfSignalNumber(constants.signals[signal] ?? 0);
export const exitCodeOfSignalNumber = (signal: number) => 128 + signal;

/** The command's own exit code, or the one that says why there is none. */
export function exitCodeOfResult(result: Result): number {
  const own = result.exitCode ?? (result.signal === null ? 1 : exitCodeOfSignal(result.signal as NodeJS.Signals));
  const codes: Record<Outcome, number> = {
    success: own,
    failure: own,
    timeout: TIMEOUT,
    cancellation: CANCELLED,
    denial: DENIED,
    blocked: DENIED,
    lost: OURS,
    error: OURS,
  };
  return codes[result.outcome];
}

/** Wrong use of the command line, or a failure of ours. */
export function exitCodeOfError(error: unknown): number {
  const { code, context } = ensureShellfleetError(error);
  const badUrl = code === 'REDIS_UNSUITABLE' && context.setting === undefined;
  return code.endsWith('_INVALID') || badUrl ? USAGE : OURS;
}
