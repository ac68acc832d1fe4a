import { constants } from 'node:os';
import { ensureShellfleetError, type Outcome, type Result, type ToolErrorCode } from '@shellfleet/protocol';

export const USAGE = 2;
const TIMEOUT = 124;
export const OURS = 125;
export const DENIED = 126;
export const CANCELLED = 130;
/** Returns 128 plus the number of the signal, as a shell does. */
export const exitCodeOfSignal = (signal: NodeJS.Signals) => exitCodeOfSignalNumber(constants.signals[signal] ?? 0);
export const exitCodeOfSignalNumber = (signal: number) => 128 + signal;

/** Returns the exit code of the command, or the code for an outcome without one. */
export function exitCodeOfResult(result: Result): number {
  const own = result.exitCode ?? OURS;
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

/** Returns 1 for a failed call, and else the code of the outcome that a command would have. */
export function exitCodeOfToolError(code: ToolErrorCode): number {
  const codes: Partial<Record<ToolErrorCode, number>> = {
    'unknown-tool': USAGE,
    'arguments-invalid': USAGE,
    timeout: TIMEOUT,
    'not-started': TIMEOUT,
    'approval-expired': OURS,
    cancelled: CANCELLED,
    denied: DENIED,
    lost: OURS,
    error: OURS,
  };
  return codes[code] ?? 1;
}

/** Returns 2 for invalid input, Redis addresses or connection files, and 125 for a failure of Shellfleet. */
export function exitCodeOfError(error: unknown): number {
  const { code, context } = ensureShellfleetError(error);
  if (context.reason === 'start-deadline') return TIMEOUT;
  const isBadSetting = code === 'REDIS_UNSUITABLE' && context.setting === undefined;
  return code.endsWith('_INVALID') || isBadSetting ? USAGE : OURS;
}
