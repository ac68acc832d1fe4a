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

// TASK-1. Each attempt has a session of its own, named after the batch, the task and the attempt, and each of its scripts an idempotency key. A
//         later driver of a named batch finds by them what an earlier one began: it waits for its Results, and runs nothing a second time.
// TASK-2. An attempt that ended with its driver, between two scripts, is begun again in a fresh sandbox. So is one that the earlier driver
//         left with a Result that lets a resumed task run again.

export interface TaskRun {
  /** of the first attempt */
  sessionId: string;
  /** An earlier driver of the batch may have begun it. */
  named: boolean;
  /** Attempts that ended under earlier drivers, with their results in the file. */
  attemptsBefore: number;
  retries: { infra: number; command: number };
  startDeadlineMs?: number | undefined;
  signal: AbortSignal | undefined;
}

/** Runs a task to its end, and again from its beginning as often as `retries` allows. Never rejects. */
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
      // It was closed before this driver was there.
      if (earlier !== undefined && opened.generation !== earlier.generation) return 'interrupted';
      // Its driver may have died before it added one.
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
    // Its session was closed between two steps.
    if (signal?.aborted) return { outcome: 'cancellation', results };
    if (await wasLeft(view, sessionId, error)) return 'interrupted';
    return { outcome: 'error', results, error: ensureShellfleetError(error).toJSON() };
  }
}

/** TASK-2. */
function classifyEarlier(results: Result[], scripts: number): Attempt | 'interrupted' {
  const attempt = toAttempt(results);
  if (RUN_AGAIN.includes(attempt.outcome)) return 'interrupted';
  return attempt.outcome === 'success' && results.length < scripts ? 'interrupted' : attempt;
}

function toAttempt(results: Result[]): Attempt {
  const last = results.at(-1);
  return { outcome: last?.outcome ?? 'success', results, ...(last?.error === undefined ? {} : { error: last.error }) };
}

/** Whether its session was closed because this process did not drive it for a while: it was asleep, say. */
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
