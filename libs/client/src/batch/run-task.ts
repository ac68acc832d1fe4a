import { setTimeout as delay } from 'node:timers/promises';
import { ensureShellfleetError, parseOrThrow } from '@shellfleet/protocol';
import type { FleetView } from '../view.ts';
import { stopOf, TaskStop } from './batch-stop.ts';
import type { TaskRepeat } from './expand-task.ts';
import { retryKindOf } from './retry-kind.ts';
import { type ParsedTask, repeatedTaskSchema } from './task.ts';
import type { TaskPlaces } from './task-places.ts';
import type { TaskResult } from './task-result.ts';
import type { AttemptEnd } from './task-trail.ts';
import { type Attempt, tryTask } from './try-task.ts';
import type { UsedSession } from './used-session.ts';

export interface TaskRun {
  sessionId: string;
  /** Number of times that each task of the batch runs. */
  repeats: number;
  /** Whether an earlier driver of the batch may have begun the task. */
  named: boolean;
  /** Attempts that ended under earlier drivers, from the results file. */
  attemptsBefore: number;
  retries: { infra: number; command: number };
  startDeadlineMs: number | undefined;
  places: TaskPlaces;
  /** Is called with an error of an attempt before its session is closed. */
  onError?: ((error: unknown) => void) | undefined;
  signal: AbortSignal;
  /** Called when an attempt begins. */
  onAttempt(attempt: { sessionId: string; attempt: number }): void;
  /** Called when an attempt has ended that is followed by another one. */
  onRetry(attempt: { attempt: number; end: AttemptEnd }): void;
}

export interface TaskEnd {
  result: TaskResult;
  /** The sessions of all attempts of this driver. */
  used: UsedSession[];
}

/** Wait before the first retry after a failure of the infrastructure. It doubles with each further one. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;

/** Runs a task to its end, and again as often as `retries` allows. Never rejects. */
export async function runTask(view: FleetView, given: TaskRepeat, run: TaskRun): Promise<TaskEnd> {
  const { id, repeat } = given;
  const begunAt = Date.now();
  const used: UsedSession[] = [];
  const describe = (sessionId: string, end: AttemptEnd, attempts: number): TaskEnd => ({
    result: {
      ...{ id, task: String(given.task?.id), repeat, sessionId, ...end, attempts },
      ...{ startedAt: new Date(begunAt).toISOString(), durationMs: Date.now() - begunAt },
    },
    used,
  });
  let task: ParsedTask;
  try {
    task = parseOrThrow(repeatedTaskSchema(run.repeats), given.task, 'COMMAND_INVALID', 'The task');
  } catch (cause) {
    return describe(run.sessionId, invalid(cause), run.attemptsBefore + 1);
  }
  using stop = new TaskStop(run.signal, task.deadlineMs);
  const { filesOf, fileOf, outputsOf } = run.places;
  const places = outputsOf(task, repeat);
  const left = { ...run.retries };
  for (let attempts = run.attemptsBefore + 1; ; attempts++) {
    const sessionId = attempts === 1 ? run.sessionId : `${run.sessionId}.${attempts}`;
    run.onAttempt({ sessionId, attempt: attempts });
    const attempt: Attempt = {
      ...{
        task: { ...task, files: filesOf(task, repeat) },
        places,
        fileOf,
        sessionId,
        named: run.named,
        startDeadlineMs: run.startDeadlineMs,
      },
      ...{ signal: stop.signal, used, onError: run.onError },
    };
    const end = await tryTask(view, attempt);
    if (stop.signal.aborted) return describe(sessionId, end === 'interrupted' ? stopped(stop.signal) : end, attempts);
    if (end === 'interrupted') continue;
    const kind = retryKindOf(end);
    if (kind === 'done' || left[kind]-- <= 0) return describe(sessionId, end, attempts);
    run.onRetry({ attempt: attempts, end });
    if (kind === 'infra') await waitBefore(run.retries.infra - left.infra, stop.signal);
    if (stop.signal.aborted) return describe(sessionId, end, attempts);
  }
}

async function waitBefore(retry: number, signal: AbortSignal): Promise<void> {
  await delay(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (retry - 1)), undefined, { signal }).catch(() => {});
}

function invalid(cause: unknown): AttemptEnd {
  return { ...nothing, outcome: 'error', error: ensureShellfleetError(cause).toJSON() };
}

function stopped(signal: AbortSignal): AttemptEnd {
  const endedBy = stopOf(signal);
  return { ...nothing, outcome: endedBy === 'deadline' ? 'timeout' : 'cancellation', endedBy };
}

const nothing = { passed: false, results: [], outputBytes: 0 };
