import type { ErrorCode, Outcome } from '@shellfleet/protocol';
import type { TaskResult } from './task.ts';

const DONE: readonly Outcome[] = ['success', 'cancellation', 'denial'];

/** After these the same command in the same session may do harm. The next attempt at a task has a session of its own. */
const OF_THE_SESSION: readonly string[] = [
  'SESSION_CLOSED',
  'SESSION_LOST',
  'CONTAINER_LOST',
  'SHELL_UNRESPONSIVE',
  'LEASE_LOST',
] satisfies ErrorCode[];

/** Which of a batch's `retries` an attempt that ended takes. `done`: none, because it succeeded, or would end in the same way again. */
export function retryKindOf({ outcome, error }: Pick<TaskResult, 'outcome' | 'error'>): 'done' | 'infra' | 'command' {
  if (DONE.includes(outcome)) return 'done';
  if (outcome === 'lost') return 'infra';
  if (outcome !== 'error') return 'command';
  return error === undefined || error.retryable || OF_THE_SESSION.includes(error.code) ? 'infra' : 'done';
}
