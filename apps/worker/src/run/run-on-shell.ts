import { type ErrorResult, ShellfleetError, type StreamName, withDefaultLimits } from '@shellfleet/protocol';
import type { SandboxDeath } from '../sandbox/sandbox.ts';
import type { EntryEnd, EntryHandlers, LiveShell } from '../shell/live-shell.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type { ShellEnd, ShellHello, ShellStart, StreamOffsets } from '../shell/shell.ts';
import type { EntryRun } from './entry-run.ts';
import { neverBegun } from './results.ts';
import type { SessionContext } from './session-context.ts';

/** How an entry ended on the shell, over all connections. */
export type RunEnd =
  | { type: 'ended'; end: ShellEnd }
  /** It may have run; how it ended is not known. */
  | { type: 'lost' }
  | { type: 'failed'; error: ShellfleetError; reason?: ErrorResult['reason'] };

export interface EntryStreams {
  onOutput: EntryHandlers['onOutput'];
  /** Raw bytes of each stream that were received so far: a new connection continues there. */
  received(): Record<StreamName, number>;
  /** The entry is followed on a new connection. */
  resumed?(): void;
  /** Of an entry whose stdin is open. */
  input?: InputListener | undefined;
}

/** Forwards an open stdin to the shell of the current connection. */
export interface InputListener {
  /** The entry was started or resumed on this connection. After `resume` the keeper reports the position of the pipe through taken(). */
  connected(shell: LiveShell, how: 'start' | 'resume'): void;
  taken(offset: number, readerClosed: boolean): void;
}

/** Greatest number of reconnections in a row without new output; then the keeper is considered unresponsive. */
const MOST_IDLE_CONNECTIONS = 5;

/**
 * Starts an entry on the session's shell, or resumes one that runs, and follows it over broken connections until it has ended. A cancel of
 * the entry stops it, on every connection anew, also when the cancel came before the start.
 */
export async function runOnShell(
  start: ShellStart,
  run: Pick<EntryRun, 'from' | 'isCancelled' | 'onCancel' | 'makeShellReady'>,
  session: Pick<SessionContext, 'owner' | 'spec'>,
  shell: SessionShell,
  streams: EntryStreams,
): Promise<RunEnd> {
  const killGraceMs = start.type === 'command' ? (start.killGraceMs ?? 0) : 0;
  const stop = () => shell.live?.stop(start.entryId, { killGraceMs });
  const begin = (how: 'start' | 'resume'): Promise<EntryEnd> => {
    const ended = beginOn(shell, how, start, streams);
    if (run.isCancelled) stop();
    return ended;
  };
  run.onCancel(stop);
  try {
    return await follow(begin, start.entryId, run, session, shell, streams);
  } finally {
    run.onCancel(undefined);
  }
}

function beginOn(shell: SessionShell, how: 'start' | 'resume', start: ShellStart, streams: EntryStreams) {
  const live = connectionOf(shell);
  const { input, onOutput } = streams;
  const handlers = { onOutput, onInputTaken: input?.taken.bind(input) };
  const ended =
    how === 'start'
      ? live.start(onPrepared(start, shell), handlers)
      : live.resume(start.entryId, resumeFrom(streams.received(), live.hello, start.entryId), handlers);
  input?.connected(live, how);
  if (how === 'resume') streams.resumed?.();
  return ended;
}

/** EPOCH-2, also when the shell dies while the start is on its way. */
function onPrepared(start: ShellStart, { preparedShellNumber }: SessionShell): ShellStart {
  return start.type === 'command' ? { ...start, shellNumber: preparedShellNumber } : start;
}

async function follow(
  begin: (how: 'start' | 'resume') => Promise<EntryEnd>,
  entryId: string,
  { from, makeShellReady }: Pick<EntryRun, 'from' | 'makeShellReady'>,
  session: Pick<SessionContext, 'owner' | 'spec'>,
  shell: SessionShell,
  { received }: EntryStreams,
): Promise<RunEnd> {
  let ended = await begin(from);
  let receivedBefore = total(received());
  let idleConnections = 0;
  for (;;) {
    switch (ended.type) {
      case 'ended': {
        const { shellNumber, reason } = ended.end.shell;
        shell.recordShell(shellNumber, reason ?? 'the shell ended');
        return ended;
      }
      case 'refused':
        if (ended.reason === 'other-shell') {
          // Outside the sandbox it is not this shell that was made ready.
          if (!(await makeShellReady()) || !shell.ready) return { type: 'failed', error: neverBegun(session) };
          ended = await begin('start');
          break;
        }
        if (ended.reason !== 'running' && ended.reason !== 'ended') return refused(ended.reason, session);
        ended = await begin('resume');
        break;
      case 'gone': {
        const now = total(received());
        idleConnections = now > receivedBefore ? 0 : idleConnections + 1;
        receivedBefore = now;
        const hello = idleConnections > MOST_IDLE_CONNECTIONS ? await shell.giveUp() : await shell.reconnect();
        if (hello === undefined) return shell.unresponsive ? unresponsive(session) : died(shell.death, session);
        // The hello shows whether the start frame reached the keeper.
        ended = await begin(hello.entryId === entryId ? 'resume' : 'start');
      }
    }
  }
}

function connectionOf(shell: SessionShell): LiveShell {
  if (shell.live === undefined) throw new Error('the session has no shell');
  return shell.live;
}

/** The keeper has forgotten acknowledged bytes, also where the disk that stored them was lost. */
function resumeFrom(received: Record<StreamName, number>, hello: ShellHello, entryId: string): StreamOffsets {
  if (hello.entryId !== entryId) return received;
  return {
    stdout: Math.max(received.stdout, hello.acked.stdout),
    stderr: Math.max(received.stderr, hello.acked.stderr),
  };
}

function total({ stdout, stderr }: Record<StreamName, number>): number {
  return stdout + stderr;
}

function refused(reason: string, { owner }: Pick<SessionContext, 'owner'>): RunEnd {
  if (reason === 'begun-before') return { type: 'lost' };
  const message = `The shell of session ${owner.keys.session} refused a command: ${reason}.`;
  const code = reason === 'no-shell' ? 'SESSION_START_FAILED' : 'INTERNAL';
  return { type: 'failed', error: new ShellfleetError(code, message) };
}

function unresponsive({ owner }: Pick<SessionContext, 'owner'>): RunEnd {
  const message = `The keeper of session ${owner.keys.session} did not answer any more while the command ran, so its sandbox was ended. Whether the command took effect is not known. The next command gets a new shell.`;
  return { type: 'failed', error: new ShellfleetError('SHELL_UNRESPONSIVE', message), reason: 'container-removed' };
}

function died(death: SandboxDeath | undefined, { owner, spec }: Pick<SessionContext, 'owner' | 'spec'>): RunEnd {
  const { session } = owner.keys;
  if (death?.reason === 'oom') {
    const { memoryBytes } = withDefaultLimits(spec.limits);
    const message = `The sandbox of session ${session} ran out of memory (limit ${memoryBytes} bytes). Raise limits.memoryBytes, or use less.`;
    return { type: 'failed', error: new ShellfleetError('CONTAINER_LOST', message, { reason: 'oom' }), reason: 'oom' };
  }
  if (death?.reason === 'disk') {
    const message = `The sandbox of session ${session} filled the disk of its host, so it was ended, and its files were removed. The next command gets a new shell.`;
    return {
      type: 'failed',
      error: new ShellfleetError('CONTAINER_LOST', message, { reason: 'disk' }),
      reason: 'disk',
    };
  }
  const how = death?.reason === 'removed' ? 'was removed' : death?.reason === 'killed' ? 'was killed' : 'ended';
  const message = `The sandbox of session ${session} ${how} while the command ran. The next command gets a new shell.`;
  const context = { reason: death?.reason ?? 'unknown' };
  return {
    type: 'failed',
    error: new ShellfleetError('CONTAINER_LOST', message, context),
    reason: 'container-removed',
  };
}
