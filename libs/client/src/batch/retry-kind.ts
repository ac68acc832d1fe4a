import type { ErrorCode, Outcome, WireError } from '@shellfleet/protocol';
import type { TaskResult } from './task-result.ts';

const DONE: readonly Outcome[] = ['cancellation', 'denial'];

/** Errors after which the same command may do harm in the same session. The next attempt runs in another session. */
const OF_THE_SESSION: readonly string[] = [
  'SESSION_CLOSED',
  'SESSION_LOST',
  'CONTAINER_LOST',
  'SHELL_UNRESPONSIVE',
  'LEASE_LOST',
] satisfies ErrorCode[];

/** Returns which of a batch's `retries` applies. `done`: none, because the task passed or would fail again. */
export function retryKindOf({
  outcome,
  error,
  passed,
}: Pick<TaskResult, 'outcome' | 'error'> & { passed?: boolean }): 'done' | 'infra' | 'command' {
  if (outcome === 'success') return passed === false ? 'command' : 'done';
  if (passed === true || DONE.includes(outcome)) return 'done';
  if (outcome === 'lost') return 'infra';
  if (outcome !== 'error') return 'command';
  return error === undefined || isOfInfrastructure(error) ? 'infra' : 'done';
}

/** Tells whether another attempt in a fresh session may end without this error. */
export function isOfInfrastructure({ code, retryable }: WireError): boolean {
  return retryable || OF_THE_SESSION.includes(code);
}
