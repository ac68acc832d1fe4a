import type { ErrorCode, Outcome } from '@shellfleet/protocol';
import type { TaskResult } from './task.ts';

const DONE: readonly Outcome[] = ['success', 'cancellation', 'denial'];

/** Errors after which the same command may do harm in the same session. The next attempt runs in another session. */
const OF_THE_SESSION: readonly string[] = [
  'SESSION_CLOSED',
  'SESSION_LOST',
  'CONTAINER_LOST',
  'SHELL_UNRESPONSIVE',
  'LEASE_LOST',
] satisfies ErrorCode[];

/** Returns which of a batch's `retries` applies. `done`: none, because the task succeeded or would fail again. */
export function retryKindOf({ outcome, error }: Pick<TaskResult, 'outcome' | 'error'>): 'done' | 'infra' | 'command' {
  if (DONE.includes(outcome)) return 'done';
  if (outcome === 'lost') return 'infra';
  if (outcome !== 'error') return 'command';
  return error === undefined || error.retryable || OF_THE_SESSION.includes(error.code) ? 'infra' : 'done';
}
