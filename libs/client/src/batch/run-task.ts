import { readStoredSession } from '@shellfleet/mailbox';
import { DRIVER_GONE, ensureShellfleetError, isShellfleetError, parseOrThrow, type Result } from '@shellfleet/protocol';
import { Session } from '../session.ts';
import { beginClose, closeSession } from '../submit/close-session.ts';
import { openSession } from '../submit/open-session.ts';
import type { FleetView } from '../view.ts';
import { findEarlierAttempt, readEarlierResults, stepKey } from './earlier-attempt.ts';
import { RUN_AGAIN } from './results-file.ts';
import { retryKindOf } from './retry-kind.ts';
import { type Task, type TaskResult, taskSchema } from './task.ts';

// TASK-1. Each attempt has a session named after batch, task and attempt, and idempotency keys for its scripts. So a
//     later driver of a named batch finds the scripts that an earlier driver began, waits for their Results, and runs
//     none of them twice.
// TASK-2. An attempt whose driver ended between two scripts is repeated in a fresh sandbox. So is an attempt whose
//     outcome is in RUN_AGAIN.

export interface TaskRun {
  sessionId: string;
  /** Whether an earlier driver of the batch may have begun the task. */
  named: boolean;
  /** Attempts that ended under earlier drivers, from the results file. */
  attemptsBefore: number;
  retries: { infra: number; command: number };
  startDeadlineMs?: number | undefined;
  signal: AbortSignal | undefined;
}

/** Runs a task to its end, and again as often as `retries` allows. Never rejects. */
export async function runTask(view: FleetView, task: Task, run: TaskRun): Promise<TaskResult> {
  const startedAt = Date.now();
  const left = { ...run.retries };
  for (let attempts = run.attemptsBefore + 1; ; attempts++) {
    const id = attempts === 1 ? run.sessionId : `${run.sessionId}.${attempts}`;
    const attempt = await tryTask(view, task, id, run);
    if (!run.signal?.aborted) {
      if (attempt === 'interrupted') continue;
      const kind = retryKindOf(attempt);
      if (kind !== 'done' && left[kind]-- > 0) continue;
    }
    const ended: Attempt = attempt === 'interrupted' ? { outcome: 'cancellation', results: [] } : attempt;
    return { id: String(task?.id), sessionId: id, ...ended, attempts, durationMs: Date.now() - startedAt };
  }
}

type Attempt = Pick<TaskResult, 'outcome' | 'results' | 'error'>;

async function tryTask(
  view: FleetView,
  task: Task,
  sessionId: string,
  { named, startDeadlineMs, signal }: TaskRun,
): Promise<Attempt | 'interrupted'> {
  const results: Result[] = [];
  try {
    const { script, files = {}, timeoutMs } = parseOrThrow(taskSchema, task, 'COMMAND_INVALID', 'The task');
    const scripts = [script].flat();
    const options = { timeoutMs, startDeadlineMs };
    const earlier = named ? await findEarlierAttempt(view, sessionId, scripts.length) : undefined;
    if (earlier !== undefined && !earlier.open) {
      const found = await readEarlierResults(view, sessionId, earlier, scripts, {
        ...options,
        spec: task.spec,
        signal,
      });
      return classifyEarlier(found, scripts.length);
    }
    const opened = await openSession(view, sessionId, task.spec, { driven: true });
    using _driving = view.driven.drive(opened.keys);
    const close = () => beginClose(view, opened.keys, opened.generation).catch(() => {});
    signal?.addEventListener('abort', close, { once: true });
    try {
      // The session was closed before this driver existed.
      if (earlier !== undefined && opened.generation !== earlier.generation) return 'interrupted';
      // The earlier driver may have died before it added a job for the session.
      if (earlier !== undefined) await view.ensureJob(opened);
      const session = new Session(view, opened);
      if (earlier === undefined)
        for (const [path, localPath] of Object.entries(files)) await session.files.upload(localPath, path);
      for (const [index, step] of scripts.entries()) {
        const result = await session.run(step, { ...options, ...(named ? { idempotencyKey: stepKey(index) } : {}) });
        results.push(result);
        if (result.outcome !== 'success') break;
      }
    } finally {
      signal?.removeEventListener('abort', close);
      await close();
    }
    if (results.length <= (earlier?.begun.length ?? 0)) return classifyEarlier(results, scripts.length);
    return toAttempt(results);
  } catch (error) {
    // The session was closed between two steps.
    if (signal?.aborted) return { outcome: 'cancellation', results };
    if (await wasLeft(view, sessionId, error)) return 'interrupted';
    return { outcome: 'error', results, error: ensureShellfleetError(error).toJSON() };
  }
}

/** Decides how to continue an earlier attempt (TASK-2). */
function classifyEarlier(results: Result[], scripts: number): Attempt | 'interrupted' {
  const attempt = toAttempt(results);
  if (RUN_AGAIN.includes(attempt.outcome)) return 'interrupted';
  return attempt.outcome === 'success' && results.length < scripts ? 'interrupted' : attempt;
}

function toAttempt(results: Result[]): Attempt {
  const last = results.at(-1);
  return { outcome: last?.outcome ?? 'success', results, ...(last?.error === undefined ? {} : { error: last.error }) };
}

/** Tells whether the session was closed because this process sent it no heartbeat for a while, such as while asleep. */
async function wasLeft(view: FleetView, sessionId: string, error: unknown): Promise<boolean> {
  if (!isShellfleetError(error) || error.code !== 'SESSION_CLOSED') return false;
  try {
    const keys = view.keysOf(sessionId);
    await closeSession(view, keys, undefined);
    return (await readStoredSession(view.redis, keys))?.closedWith.includes(DRIVER_GONE) === true;
  } catch {
    return false;
  }
}
