import { readStoredSession } from '@shellfleet/mailbox';
import { DRIVER_GONE, isShellfleetError, parseCommandId, type Result } from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { Session } from '../session.ts';
import { closeSession } from '../submit/close-session.ts';
import type { RunOptions } from '../submit/parse-command.ts';
import type { FleetView } from '../view.ts';
import { stopOf } from './batch-stop.ts';
import { type EarlierAttempt, findEarlierAttempt, readEarlierResult } from './earlier-attempt.ts';
import { inSession, type SessionUse } from './in-session.ts';
import { RUN_AGAIN } from './results-file.ts';
import { GRADE_KEY, idempotencyKeysOf } from './step-keys.ts';
import type { ParsedTask } from './task.ts';
import { fetchOutputs, type OutputPlace } from './task-outputs.ts';
import type { TaskPlaces } from './task-places.ts';
import { type AttemptEnd, type RunCommand, TaskTrail } from './task-trail.ts';
import type { UsedSession } from './used-session.ts';

// TASK-1. Each attempt has a session named after batch, task and attempt, and idempotency keys for its commands. So a
//     later driver of a named batch finds the commands that an earlier driver began, waits for their Results, and runs
//     none of them twice. A fresh session for a grade is the exception: it has a name of its own each time.
// TASK-2. An attempt whose driver ended before its last step is repeated in a fresh sandbox, unless its session is
//     still open. So is an attempt whose outcome is in RUN_AGAIN.

export interface Attempt extends SessionUse {
  task: ParsedTask;
  places: readonly OutputPlace[];
  /** Returns the path on this machine of a name in the `files` of the task. */
  fileOf: TaskPlaces['fileOf'];
  sessionId: string;
  /** Whether an earlier driver of the batch may have begun the attempt. */
  named: boolean;
  startDeadlineMs: number | undefined;
  /** Gets each session that the attempt uses. */
  used: UsedSession[];
}

/** Longest time in which the outputs of a task are fetched that has passed its deadline. */
const LATE_OUTPUTS_MS = 60_000;

/** Makes one attempt at a task. Returns `interrupted` when it must begin again in a fresh session. Never rejects. */
export async function tryTask(view: FleetView, attempt: Attempt): Promise<AttemptEnd | 'interrupted'> {
  const { task, sessionId, named, signal } = attempt;
  const trail = new TaskTrail(task);
  try {
    const keys = idempotencyKeysOf(task.setup?.length ?? 0, [task.script].flat().length);
    const earlier = named ? await findEarlierAttempt(view, sessionId, keys) : undefined;
    if (earlier !== undefined && !earlier.open) return await readEnded(view, attempt, earlier, trail);
    return await doSteps(view, attempt, earlier, trail);
  } catch (error) {
    attempt.onError?.(error);
    // The session was closed between two steps.
    if (signal.aborted) return trail.stopped(stopOf(signal));
    if (await wasLeft(view, sessionId, error)) return 'interrupted';
    return trail.failed(error);
  }
}

/** Does the steps of a task in its session, from the first that no earlier driver has done. */
async function doSteps(
  view: FleetView,
  attempt: Attempt,
  earlier: EarlierAttempt | undefined,
  trail: TaskTrail,
): Promise<AttemptEnd | 'interrupted'> {
  const { task, sessionId, places, signal } = attempt;
  const fresh = typeof task.grade === 'object' && task.grade.fresh === true ? task.grade.script : undefined;
  const isOver = await inSession(view, sessionId, attempt, async ({ session, opened }) => {
    const used = note(attempt, opened, earlier);
    // The session was closed before this driver existed, and is a new one that nothing uses.
    if (earlier !== undefined && opened.generation !== earlier.generation) return false;
    // The earlier driver may have died before it added a job for the session.
    if (earlier !== undefined) await view.ensureJob(opened);
    const run = runIn(attempt, session, used);
    if (earlier === undefined) await upload(session, attempt);
    await trail.runScripts(run);
    const isOpen = !signal.aborted || stopOf(signal) === 'deadline';
    if (isOpen && trail.isReadable && places.length > 0) {
      const step = trail.step;
      trail.step = 'outputs';
      trail.outputs = await fetchOutputs(
        session.files,
        places,
        signal.aborted ? AbortSignal.timeout(LATE_OUTPUTS_MS) : signal,
      );
      if (signal.aborted) trail.step = step;
    }
    if (signal.aborted) return true;
    if (task.grade !== undefined && fresh === undefined && trail.isGradable)
      await grade(view, attempt, task.grade, trail, run);
    return true;
  });
  if (!isOver) return 'interrupted';
  // The session of the task is closed by now. It would keep a slot for which the session of the grade may wait.
  if (fresh !== undefined && trail.isGradable && !signal.aborted) {
    trail.step = 'grade';
    trail.grade = await gradeFresh(view, attempt, fresh, trail);
  }
  // The last Result shows whether the signal came in time to end a command.
  if (signal.aborted && isStopped(trail)) return trail.stopped(stopOf(signal));
  return isOnlyFound(trail, earlier) ? asEarlier(trail) : trail.end();
}

/** Reads the Results of an attempt whose session was closed. */
async function readEnded(
  view: FleetView,
  attempt: Attempt,
  earlier: EarlierAttempt,
  trail: TaskTrail,
): Promise<AttemptEnd | 'interrupted'> {
  const { task, sessionId, places, startDeadlineMs, signal } = attempt;
  const used = note(attempt, { keys: view.keysOf(sessionId), generation: earlier.generation }, earlier);
  const options = { timeoutMs: task.timeoutMs, startDeadlineMs, spec: task.spec, signal };
  const read: RunCommand = async (command) => {
    const result = await readEarlierResult(view, sessionId, earlier, command, options);
    if (result !== undefined) noteCommand(used, result, command.key);
    return result;
  };
  if (!(await trail.runScripts(read))) return 'interrupted';
  // Its files are gone.
  if (places.length > 0 && trail.isReadable) return 'interrupted';
  if (task.grade !== undefined && trail.isGradable) {
    await grade(view, attempt, task.grade, trail, read);
    if (trail.grade === undefined) return 'interrupted';
  }
  return asEarlier(trail);
}

/** Decides how to continue an attempt that this driver only found (TASK-2). */
function asEarlier(trail: TaskTrail): AttemptEnd | 'interrupted' {
  const end = trail.end();
  return RUN_AGAIN.includes(end.outcome) ? 'interrupted' : end;
}

function isOnlyFound({ setup, results, grade }: TaskTrail, earlier: EarlierAttempt | undefined): boolean {
  if (earlier === undefined) return false;
  return setup.length + results.length + (grade === undefined ? 0 : 1) <= earlier.begun.size;
}

/** Tells whether the batch ended an attempt before the end of its steps. */
function isStopped({ task, last, grade, outputs, isReadable, isGradable }: TaskTrail): boolean {
  if (isReadable && outputs === undefined && Object.keys(task.outputs ?? {}).length > 0) return true;
  const end = grade ?? last;
  return end === undefined || end.outcome === 'cancellation' || (task.grade !== undefined && isGradable && !grade);
}

/** Grades a task with `run`, which uses the session of the task, or in a fresh session. */
async function grade(
  view: FleetView,
  attempt: Attempt,
  given: NonNullable<ParsedTask['grade']>,
  trail: TaskTrail,
  run: RunCommand,
): Promise<void> {
  trail.step = 'grade';
  const { script, fresh = false } = typeof given === 'string' ? { script: given } : given;
  trail.grade = fresh ? await gradeFresh(view, attempt, script, trail) : await run({ key: GRADE_KEY, script });
}

/** Grades in a fresh session, which gets the files, the setup and the outputs of the task first. */
async function gradeFresh(
  view: FleetView,
  attempt: Attempt,
  script: string,
  { outputs = {} }: TaskTrail,
): Promise<Result | undefined> {
  const { task, sessionId, signal } = attempt;
  const id = `${sessionId}.g${view.nextId().slice(-8).toLowerCase()}`;
  return inSession(view, id, attempt, async ({ session, opened }) => {
    const run = runIn({ ...attempt, named: false }, session, note(attempt, opened));
    await upload(session, attempt);
    for (const before of task.setup ?? []) {
      const result = await run({ key: '', script: before });
      // The grade cannot run here, so this is what it says.
      if (result?.outcome !== 'success') return result;
    }
    for (const [path, { path: local }] of Object.entries(outputs))
      if (local !== undefined) await session.files.upload(local, path, { signal });
    return run({ key: '', script });
  });
}

async function upload(session: Session, { task: { files = {} }, fileOf, signal }: Attempt): Promise<void> {
  for (const [path, name] of Object.entries(files)) await session.files.upload(await fileOf(name), path, { signal });
}

/** Returns the function that runs a command of the task in a session. The deadline cancels the command. */
function runIn({ task, startDeadlineMs, named, signal }: Attempt, session: Session, used: UsedSession): RunCommand {
  const options: RunOptions = { timeoutMs: task.timeoutMs, startDeadlineMs };
  return async ({ key, script }) => {
    signal.throwIfAborted();
    const command = await session.submit(script, named ? { ...options, idempotencyKey: key } : options);
    const ended = new AbortController();
    // For any other reason the session is closed, which cancels the command.
    const cancel = () => {
      if (stopOf(signal) !== 'deadline') return;
      const ask = () => command.cancel('the deadline of the task has passed');
      void retryWhileRedisIsDown(ask, ended.signal, { errorReplies: 'throw' }).catch(() => {});
    };
    signal.addEventListener('abort', cancel, { once: true });
    try {
      if (signal.aborted) cancel();
      const result = await command.result();
      noteCommand(used, result, named ? key : undefined);
      return result;
    } finally {
      ended.abort();
      signal.removeEventListener('abort', cancel);
    }
  };
}

function note(
  { used }: Attempt,
  { keys, generation }: Pick<UsedSession, 'keys' | 'generation'>,
  earlier?: EarlierAttempt,
): UsedSession {
  const begun = [...(earlier?.begun ?? [])];
  const session = {
    ...{ keys, generation, entryIds: begun.map(([, { entryId }]) => entryId) },
    idempotencyKeys: begun.map(([key]) => key),
  };
  used.push(session);
  return session;
}

function noteCommand(used: UsedSession, { commandId }: Result, idempotencyKey: string | undefined): void {
  used.entryIds.push(parseCommandId(commandId)?.entryId ?? '');
  if (idempotencyKey !== undefined) used.idempotencyKeys.push(idempotencyKey);
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
