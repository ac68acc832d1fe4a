import { type ErrorResult, ShellfleetError, withDefaultLimits } from '@shellfleet/protocol';
import type { SandboxDeath } from '../sandbox/sandbox.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type {
  EntryEnd,
  EntryHandlers,
  Shell,
  ShellEnd,
  ShellHello,
  ShellStart,
  StreamOffsets,
} from '../shell/shell.ts';
import type { EntryRun } from './entry-run.ts';
import { neverBegun } from './results.ts';
import type { SessionContext } from './session-context.ts';

/** How an entry ended on the shell, over all connections. */
export type RunEnd =
  | { type: 'ended'; end: ShellEnd }
  /** The entry may have run; how it ended is not known. */
  | { type: 'lost' }
  | RunFailed;

interface RunFailed {
  type: 'failed';
  error: ShellfleetError;
  reason?: ErrorResult['reason'];
}

/** Maximum of reconnections in a row without new output. After them the keeper counts as unresponsive. */
const MOST_IDLE_CONNECTIONS = 5;

type ShellSession = Pick<SessionContext, 'owner' | 'spec' | 'shell' | 'signal'>;

/** Thrown when this host has lost or left the session during a run, of whose end it knows nothing. */
export class SessionLeft extends Error {}

/** Starts or resumes an entry, and follows it over broken connections to its end. A cancel applies to all of them. */
export async function runOnShell(
  start: ShellStart,
  run: Pick<EntryRun, 'from' | 'isCancelled' | 'onCancel' | 'makeShellReady'>,
  session: ShellSession,
  handlers: EntryHandlers,
): Promise<RunEnd> {
  const { shell } = session;
  const killGraceMs = start.type === 'command' ? (start.killGraceMs ?? 0) : 0;
  const stop = () => shell.live?.stop(start.entryId, { killGraceMs });
  const begin = (how: 'start' | 'resume'): Promise<EntryEnd> => {
    const live = connectionOf(shell);
    const ended =
      how === 'start' ? live.start(onPrepared(start, shell), handlers) : live.resume(start.entryId, handlers);
    if (run.isCancelled) stop();
    return ended;
  };
  run.onCancel(stop);
  try {
    return await follow(begin, start.entryId, run, session, handlers);
  } finally {
    run.onCancel(undefined);
  }
}

/** Binds a command to the prepared shell (EPOCH-2), which may die while the start is under way. */
function onPrepared(start: ShellStart, { preparedShellNumber }: SessionShell): ShellStart {
  return start.type === 'command' ? { ...start, shellNumber: preparedShellNumber } : start;
}

async function follow(
  begin: (how: 'start' | 'resume') => Promise<EntryEnd>,
  entryId: string,
  { from, makeShellReady }: Pick<EntryRun, 'from' | 'makeShellReady'>,
  session: ShellSession,
  { received }: Pick<EntryHandlers, 'received'>,
): Promise<RunEnd> {
  const { shell } = session;
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
          // makeShellReady() prepares the session's own shell. So in a wider sandbox `shell` is still not ready.
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
        const again = await reconnect(idleConnections, session);
        if (again.type === 'failed') return again;
        // The hello shows whether the start frame reached the keeper.
        ended = await begin(again.hello.entryId === entryId ? 'resume' : 'start');
      }
    }
  }
}

/**
 * Connects again. `idleConnections` counts the connections in a row that broke without new output or an answer. Throws
 * SessionLeft.
 */
export async function reconnect(
  idleConnections: number,
  session: ShellSession,
): Promise<{ type: 'connected'; hello: ShellHello } | RunFailed> {
  const { shell, signal } = session;
  const hello = idleConnections > MOST_IDLE_CONNECTIONS ? await shell.giveUp() : await shell.reconnect();
  if (signal.aborted) throw new SessionLeft();
  if (hello !== undefined) return { type: 'connected', hello };
  return shell.unresponsive ? unresponsive(session) : died(shell.death, session);
}

function connectionOf(shell: SessionShell): Shell {
  if (shell.live === undefined) throw new Error('the session has no shell');
  return shell.live;
}

function total({ stdout, stderr }: StreamOffsets): number {
  return stdout + stderr;
}

function refused(reason: string, { owner }: Pick<SessionContext, 'owner'>): RunEnd {
  if (reason === 'begun-before') return { type: 'lost' };
  const message = `The shell of session ${owner.keys.session} refused a command: ${reason}.`;
  const code = reason === 'no-shell' ? 'SESSION_START_FAILED' : 'INTERNAL';
  return { type: 'failed', error: new ShellfleetError(code, message) };
}

function unresponsive({ owner }: Pick<SessionContext, 'owner'>): RunFailed {
  const message = `The keeper of session ${owner.keys.session} did not answer any more while the command ran, so its sandbox was ended. Whether the command took effect is not known. The next command gets a new shell.`;
  return { type: 'failed', error: new ShellfleetError('SHELL_UNRESPONSIVE', message), reason: 'container-removed' };
}

function died(death: SandboxDeath | undefined, { owner, spec }: Pick<SessionContext, 'owner' | 'spec'>): RunFailed {
  const { session } = owner.keys;
  const cause = death?.detail === undefined ? '' : `: ${death.detail}`;
  if (death?.reason === 'oom') {
    const { memoryBytes } = withDefaultLimits(spec.limits);
    const message = `The sandbox of session ${session} ran out of memory (limit ${memoryBytes} bytes). Raise limits.memoryBytes, or use less.`;
    return { type: 'failed', error: new ShellfleetError('CONTAINER_LOST', message, { reason: 'oom' }), reason: 'oom' };
  }
  if (death?.reason === 'host-memory') {
    const message = `The memory of the host of session ${session} ran out, and the kernel killed the sandbox, which was within its own limit. The next command gets a new shell.`;
    return {
      type: 'failed',
      error: new ShellfleetError('CONTAINER_LOST', message, { reason: 'host-memory' }),
      reason: 'host-memory',
    };
  }
  if (death?.reason === 'disk') {
    const message = `The sandbox of session ${session} filled the disk of its host, so it was ended, and its files were removed${cause}. The next command gets a new shell.`;
    return {
      type: 'failed',
      error: new ShellfleetError('CONTAINER_LOST', message, { reason: 'disk' }),
      reason: 'disk',
    };
  }
  const how = death?.reason === 'removed' ? 'was removed' : death?.reason === 'killed' ? 'was killed' : 'ended';
  const message = `The sandbox of session ${session} ${how} while the command ran${cause}. The next command gets a new shell.`;
  const context = { reason: death?.reason ?? 'unknown' };
  return {
    type: 'failed',
    error: new ShellfleetError('CONTAINER_LOST', message, context),
    reason: 'container-removed',
  };
}
