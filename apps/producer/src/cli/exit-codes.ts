import { constants } from 'node:os';
import { ensureShellfleetError, type Outcome, type Result, type ToolErrorCode } from '@shellfleet/protocol';

export const EXIT_USAGE = 2;
const EXIT_TIMEOUT = 124;
export const EXIT_OWN_FAILURE = 125;
export const EXIT_DENIED = 126;
export const EXIT_CANCELLED = 130;
/** Returns 128 plus the number of the signal, as a shell does. */
export const exitCodeOfSignal = (signal: NodeJS.Signals) => exitCodeOfSignalNumber(constants.signals[signal] ?? 0);
export const exitCodeOfSignalNumber = (signal: number) => 128 + signal;

/** Returns the exit code of the command, or the code for an outcome without one. */
export function exitCodeOfResult(result: Result): number {
  const own = result.exitCode ?? EXIT_OWN_FAILURE;
  const codes: Record<Outcome, number> = {
    success: own,
    failure: own,
    timeout: EXIT_TIMEOUT,
    cancellation: EXIT_CANCELLED,
    denial: EXIT_DENIED,
    blocked: EXIT_DENIED,
    lost: EXIT_OWN_FAILURE,
    error: EXIT_OWN_FAILURE,
  };
  return codes[result.outcome];
}

/** Returns the code of a batch: 0 when every task passed. */
export function exitCodeOfBatch({ totals, stoppedBy }: BatchEnd): number {
  if (stoppedBy === 'signal') return EXIT_CANCELLED;
  if (stoppedBy === 'batch-deadline') return EXIT_TIMEOUT;
  if (stoppedBy === 'failure') return 1;
  return totals.tasks - totals.skipped - totals.passed > 0 ? 1 : 0;
}

interface BatchEnd {
  totals: { tasks: number; skipped: number; passed: number };
  stoppedBy?: 'batch-deadline' | 'failure' | 'signal' | undefined;
}

/** Returns 1 for a call that failed in the tool, else the exit code of a command that ends for the same reason. */
export function exitCodeOfToolError(code: ToolErrorCode): number {
  const codes: Partial<Record<ToolErrorCode, number>> = {
    'unknown-tool': EXIT_USAGE,
    'arguments-invalid': EXIT_USAGE,
    timeout: EXIT_TIMEOUT,
    'not-started': EXIT_TIMEOUT,
    'approval-expired': EXIT_OWN_FAILURE,
    cancelled: EXIT_CANCELLED,
    denied: EXIT_DENIED,
    lost: EXIT_OWN_FAILURE,
    error: EXIT_OWN_FAILURE,
  };
  return codes[code] ?? 1;
}

/**
 * Returns 2 for invalid input, an unusable path of this machine, an invalid Redis address or connection file, 124 for a
 * passed start deadline, and 125 for a failure of Shellfleet.
 */
export function exitCodeOfError(error: unknown): number {
  const { code, context, cause } = ensureShellfleetError(error);
  if (context.reason === 'start-deadline') return EXIT_TIMEOUT;
  const isBadSetting = code === 'REDIS_UNSUITABLE' && context.setting === undefined;
  const isWrongUsage = code.endsWith('_INVALID') || isBadSetting || (code.startsWith('FILE_') && isBadPath(cause));
  return isWrongUsage ? EXIT_USAGE : EXIT_OWN_FAILURE;
}

/**
 * Returns true if this machine's system refused a path that the caller named. Errors about files in a session have no
 * system error as their cause. A full disk is no fault of the path.
 */
function isBadPath(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && BAD_PATH.has(String(cause.code));
}

const BAD_PATH = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM', 'ENAMETOOLONG', 'ELOOP', 'EROFS']);
