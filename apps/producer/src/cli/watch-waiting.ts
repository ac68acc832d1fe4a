import { isShellfleetError, lacksSealKey, type Session, type SessionInfo, ShellfleetError } from '@shellfleet/client';
import type { CliOutput } from './terminal.ts';
import { describeDuration } from './units.ts';

const LOOK_EVERY_MS = 500;
/** Pause before a report. Most restarts of workers and full slots are over by then. */
const WORDS_AFTER_MS = 2_000;
/** Extra time before this process applies a start deadline, because a live host applies it first. */
const HOSTS_DEADLINE_MS = 3_000;
/** Longest wait of a command line without a terminal while no live host can run its session. */
const NO_HOST_MS = 10 * 60_000;

interface WatchOptions {
  /** `--start-deadline`. By default a hopeless wait ends after ten minutes, but never at a terminal. */
  startDeadlineMs?: number | undefined;
  /** False for a verb that shows its own progress. */
  showsProgress?: boolean;
  /** Tells whether the work waits behind this command, which runs in the session. */
  isBehind?(runningCommandId: string): boolean;
  /** Called when the command waits in vain or too long. If it is not given, the wait has no end. */
  onHopeless?(reason: ShellfleetError): void;
}

export interface WaitingWatch extends Disposable {
  /** Reason why no live host can run the session now. */
  readonly noHostReason: string | undefined;
}

/**
 * Reports on stderr, once per reason after two seconds, why the work of a session does not begin. At a terminal it
 * shows the state of the session while the command prints nothing.
 */
export function watchWaiting(terminal: CliOutput, session: Session, options: WatchOptions = {}): WaitingWatch {
  const { startDeadlineMs, showsProgress = true, isBehind = () => false, onHopeless } = options;
  const startedAt = Date.now();
  const patienceMs = patienceOf(terminal, startDeadlineMs);
  let reason: Reason | undefined;
  let since = startedAt;
  let isSaid = false;
  let isWatched = true;
  let isHopeless = false;
  const look = async () => {
    const info = await session.info().catch(toQueueError);
    if (!isWatched || info === undefined) return;
    const found = reasonToWait(session.id, info) ?? earlierCommand(session.id, info, isBehind);
    if (found?.kind !== reason?.kind) {
      since = Date.now();
      isSaid = false;
    }
    reason = found;
    if (reason !== undefined && !isSaid && (reason.kind === 'held' || Date.now() - since >= WORDS_AFTER_MS)) {
      isSaid = true;
      const error = isShellfleetError(info) || !lacksSealKey(info) ? undefined : toKeyError(session.id, reason.words);
      if (error !== undefined && onHopeless !== undefined) return giveUp(error);
      terminal.say(reason.says);
    }
    const waitsInVain = reason?.kind.startsWith('no-host') === true && Date.now() - startedAt >= patienceMs;
    if (waitsInVain) return giveUp(noHostError(session.id, reason?.words ?? '', startDeadlineMs));
    if (showsProgress && !isShellfleetError(info)) terminal.progress(describe(info, reason, Date.now() - startedAt));
  };
  const giveUp = (error: ShellfleetError) => {
    if (isHopeless) return;
    isHopeless = true;
    onHopeless?.(error);
  };
  const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS).unref();
  return {
    get noHostReason() {
      return reason?.kind.startsWith('no-host') === true ? reason.words : undefined;
    },
    [Symbol.dispose]: () => {
      isWatched = false;
      clearInterval(timer);
      if (showsProgress) terminal.clearProgress();
    },
  };
}

/** Returns the longest wait of the command line while no live host can run the work. */
export function patienceOf(terminal: Pick<CliOutput, 'isTerminal'>, startDeadlineMs: number | undefined): number {
  if (startDeadlineMs !== undefined) return startDeadlineMs + HOSTS_DEADLINE_MS;
  return terminal.isTerminal ? Number.POSITIVE_INFINITY : NO_HOST_MS;
}

interface Reason {
  /** Kind of the reason. Only the first reason of a kind is printed, because positions change all the time. */
  kind: string;
  words: string;
  says: string;
}

export function reasonToWait(id: string, info: SessionInfo | ShellfleetError): Reason | undefined {
  if (isShellfleetError(info))
    return { kind: 'redis', words: info.message, says: `${info.message} ${id} waits until Redis is back.` };
  const { noHostReason: words, heldCommandId, atQuota, position, queueLength = position, state, hostId } = info;
  if (heldCommandId !== undefined) {
    const says = `${heldCommandId} waits for an approval; \`shellfleet approvals watch\` shows why, and how to answer.`;
    return { kind: 'held', words: says, says };
  }
  if (words !== undefined) return { kind: `no-host ${words}`, words, says: `${words} ${id} waits until one can.` };
  if (state === 'unreachable') {
    const says = `The host ${hostId} of ${id} does not answer. ${id} waits until it is back, or until another host may take it over.`;
    return { kind: 'unreachable', words: says, says };
  }
  if (info.waitsFor !== undefined) {
    const says = `The Pod of ${id} waits: ${info.waitsFor}.`;
    return { kind: 'pod', words: says, says };
  }
  if (position === undefined) return undefined;
  if (atQuota !== undefined) {
    const { quota, used, limit } = atQuota;
    const says = `The tenant has ${used} of ${limit} sessions (${quota}): ${id} waits until one of them gives its slot up (${toOrdinal(position)} of ${queueLength}).`;
    return { kind: 'quota', words: says, says };
  }
  const says = `All slots are taken: ${id} waits for one (${toOrdinal(position)} of ${queueLength}).`;
  return { kind: 'slot', words: says, says };
}

/** Returns the reason of work that waits for the end of an earlier command of its session. */
function earlierCommand(
  id: string,
  info: SessionInfo | ShellfleetError,
  isBehind: (runningCommandId: string) => boolean,
): Reason | undefined {
  const running = isShellfleetError(info) ? undefined : info.runningCommandId;
  if (running === undefined || !isBehind(running)) return undefined;
  const words = `Session ${id} runs one command at a time, and this waits for ${running}.`;
  return { kind: 'behind', words, says: `${words} \`shellfleet cancel ${running}\` ends that one.` };
}

function describe(info: SessionInfo, reason: Reason | undefined, waitedMs: number): string {
  const { id, state, position, queuedCommands, heldCommandId, runningCommandId } = info;
  const place = position === undefined ? '' : `, number ${position} in the queue of sessions`;
  const isHeld = heldCommandId !== undefined;
  if (isHeld)
    return `${id}: a command waits for an approval, ${queuedCommands} waiting (${Math.round(waitedMs / 1_000)} s)`;
  if (reason?.kind === 'behind')
    return `${id}: ${runningCommandId} runs, ${queuedCommands} waiting (${Math.round(waitedMs / 1_000)} s)`;
  const what = state === 'busy' ? 'running' : `${state}${place}, ${queuedCommands} waiting`;
  return `${id}: ${what} (${Math.round(waitedMs / 1_000)} s)`;
}

/** Returns the error if it is a failure of Redis. Other errors of a check say nothing about the wait. */
function toQueueError(error: unknown): ShellfleetError | undefined {
  return isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE' ? error : undefined;
}

function toKeyError(sessionId: string, reason: string): ShellfleetError {
  return new ShellfleetError(
    'SEAL_KEY_UNKNOWN',
    `${reason} Nothing was run. Set SHELLFLEET_SEAL_KEY to the key of the hosts, or remove it on the machine of \`shellfleet up\`.`,
    { sessionId },
  );
}

/** Returns an error with the exit code of a timeout. */
export function noHostError(sessionId: string | undefined, reason: string, deadlineMs = NO_HOST_MS): ShellfleetError {
  return new ShellfleetError(
    'HOST_UNREACHABLE',
    `${reason} No host could run it within ${describeDuration(deadlineMs)}, so nothing was run. --start-deadline sets how long to wait.`,
    { ...(sessionId === undefined ? {} : { sessionId }), reason: 'start-deadline' },
  );
}

function toOrdinal(place: number): string {
  const isTeen = place % 100 >= 11 && place % 100 <= 13;
  const ending = isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][place % 10] ?? 'th');
  return `${place}${ending}`;
}
