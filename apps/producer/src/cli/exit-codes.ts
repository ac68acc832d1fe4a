import { constants } from 'node:os';
import { ensureShellfleetError, type Outcome, type Result, type ToolErrorCode } from '@shellfleet/protocol';

export const USAGE = 2;
const TIMEOUT = 124;
export const OURS = 125;
export const DENIED = 126;
export const CANCELLED = 130;
/** 128 plus the number of the signal, as a shell reports it. */
export const exitCodeOfSignal = (signal: NodeJS.Signals) => exitCodeOfSignalNumber(constants.signals[signal] ?? 0);
export const exitCodeOfSignalNumber = (signal: number) => 128 + signal;

/** The exit code of the command, or the one for an outcome without exit code. */
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

/** 1 for a call that ran and failed; else that of the outcome which a command would have. */
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

/** 2 for invalid input, an invalid address of Redis or a damaged connection file; 125 for a failure of Shellfleet. */
export function exitCodeOfError(error: unknown): number {
  const { code, context } = ensureShellfleetError(error);
  if (context.reason === 'start-deadline') return TIMEOUT;
  const isBadSetting = code === 'REDIS_UNSUITABLE' && context.setting === undefined;
  return code.endsWith('_INVALID') || isBadSetting ? USAGE : OURS;
}
