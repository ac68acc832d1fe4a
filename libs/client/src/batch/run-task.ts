import { ensureShellfleetError, type Outcome, parseOrThrow, type Result } from '@shellfleet/protocol';
import { Session } from '../session.ts';
import { beginClose } from '../submit/close-session.ts';
import { openSession } from '../submit/open-session.ts';
import type { View } from '../view.ts';
import { type Task, type TaskResult, taskSchema } from './task.ts';

export interface Retries {
  infra: number;
  command: number;
}

/** Runs a task to its end, and again from its beginning as often as `retries` allows. Never rejects. */
export async function runTask(
  view: View,
  task: Task,
  sessionId: string,
  retries: Retries,
  signal: AbortSignal | undefined,
): Promise<TaskResult> {
  const startedAt = Date.now();
  const left = { ...retries };
  for (let attempts = 1; ; attempts++) {
    const id = attempts === 1 ? sessionId : `${sessionId}.${attempts}`;
    const attempt = await tryTask(view, task, id, signal);
    const kind = kindOf(attempt);
    if (!signal?.aborted && kind !== 'done' && left[kind]-- > 0) continue;
    return { id: String(task?.id), sessionId: id, ...attempt, attempts, durationMs: Date.now() - startedAt };
  }
}

type Attempt = Pick<TaskResult, 'outcome' | 'results' | 'error'>;

async function tryTask(view: View, task: Task, sessionId: string, signal: AbortSignal | undefined): Promise<Attempt> {
  const results: Result[] = [];
  try {
    const { script, files = {}, timeoutMs } = parseOrThrow(taskSchema, task, 'COMMAND_INVALID', 'The task');
    const opened = await openSession(view, sessionId, task.spec, { driven: true });
    using _driving = view.driven.drive(opened.keys);
    const close = () => beginClose(view, opened.keys, opened.generation).catch(() => {});
    signal?.addEventListener('abort', close, { once: true });
    try {
      const session = new Session(view, opened);
      for (const [path, localPath] of Object.entries(files)) await session.files.upload(localPath, path);
      for (const step of [script].flat()) {
        const result = await session.run(step, timeoutMs === undefined ? {} : { timeoutMs });
        results.push(result);
        if (result.outcome !== 'success') break;
      }
    } finally {
      signal?.removeEventListener('abort', close);
      await close();
    }
    const last = results.at(-1);
    const outcome: Outcome = last?.outcome ?? 'success';
    return { outcome, results, ...(last?.error === undefined ? {} : { error: last.error }) };
  } catch (error) {
    // Its session was closed between two steps.
    if (signal?.aborted) return { outcome: 'cancellation', results };
    return { outcome: 'error', results, error: ensureShellfleetError(error).toJSON() };
  }
}

function kindOf({ outcome, error }: Attempt): 'done' | 'infra' | 'command' {
  if (outcome === 'success' || outcome === 'cancellation' || outcome === 'denial') return 'done';
  if (outcome === 'lost') return 'infra';
  if (outcome === 'error') return error?.code.endsWith('_INVALID') ? 'done' : 'infra';
  return 'command';
}
