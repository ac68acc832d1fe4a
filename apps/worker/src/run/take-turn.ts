import {
  type Reason,
  type ResolvedSessionSpec,
  ShellfleetError,
  type StreamName,
  withDefaultLimits,
} from '@shellfleet/protocol';
import type { SandboxDeath } from '../sandbox/sandbox.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type { Shell, ShellEnd, ShellHello, ShellStart, StreamOffsets } from '../shell/shell.ts';
import type { OnOutput, TurnEnd } from '../shell/shell-turns.ts';

/** How an entry's turn came out when every way to find out was tried. */
export type Turned =
  | { type: 'ended'; end: ShellEnd }
  /** It may have run, and nobody knows how it ended. */
  | { type: 'lost' }
  | { type: 'failed'; error: ShellfleetError; reason?: Reason };

export interface TurnDeps {
  shell: SessionShell;
  spec: ResolvedSessionSpec;
  owner: { keys: { session: string } };
  isCancelled(entryId: string): boolean;
  onTurn(entryId: string, stop: () => void): void;
}

export interface TurnOutput {
  onOutput: OnOutput;
  /** Raw bytes of each stream that are here already: where a broken connection goes on. */
  received(): Record<StreamName, number>;
  /** Of an entry whose stdin is open. */
  input?: TurnInput | undefined;
}

/** What feeds an open stdin hears of the shell that reads it. */
export interface TurnInput {
  /** The entry was given to this connection. After `resume` the keeper says how far the pipe is. */
  connected(shell: Shell, how: 'start' | 'resume'): void;
  taken(offset: number, deaf: boolean): void;
}

/** Connections in a row that brought nothing: then the keeper and we do not understand each other. */
const MOST_IDLE_CONNECTIONS = 5;

/** Starts an entry, or goes on with one that runs, and follows it over broken connections to its end. */
export async function takeTurn(
  start: ShellStart,
  from: 'start' | 'resume',
  deps: TurnDeps,
  output: TurnOutput,
): Promise<Turned> {
  const { shell } = deps;
  const { entryId } = start;
  const begin = (how: 'start' | 'resume'): Promise<TurnEnd> => {
    const { turns } = shell;
    const { input, onOutput } = output;
    const onInputTaken = input?.taken.bind(input);
    const turn =
      how === 'start'
        ? turns.start(start, onOutput, onInputTaken)
        : turns.resume(entryId, latest(output.received(), turns.shell.hello, entryId), onOutput, onInputTaken);
    input?.connected(turns.shell, how);
    const killGraceMs = start.type === 'command' ? (start.killGraceMs ?? 0) : 0;
    const stop = () => turns.shell.stop(entryId, { killGraceMs });
    deps.onTurn(entryId, stop);
    // A cancel that came between the taking and the start has found nobody to stop.
    if (deps.isCancelled(entryId)) stop();
    return turn;
  };

  let turn = await begin(from);
  let known = total(output.received());
  let idleConnections = 0;
  for (;;) {
    if (turn.type === 'ended') {
      const { generation, reason } = turn.end.shell;
      shell.noteGeneration(generation, reason ?? 'the shell ended');
      return turn;
    }
    if (turn.type === 'refused') {
      if (turn.reason === 'running' || turn.reason === 'ended') {
        turn = await begin('resume');
        continue;
      }
      return refused(turn.reason, deps);
    }
    const now = total(output.received());
    idleConnections = now > known ? 0 : idleConnections + 1;
    known = now;
    const hello = idleConnections > MOST_IDLE_CONNECTIONS ? await shell.giveUp() : await shell.reconnect();
    if (hello === undefined) return died(shell.death, deps);
    // The keeper knows whether the start frame reached it.
    turn = await begin(hello.entryId === entryId ? 'resume' : 'start');
  }
}

/** What was acknowledged is not to be had again, even where the disk that held it was lost. */
function latest(received: Record<StreamName, number>, hello: ShellHello, entryId: string): StreamOffsets {
  if (hello.entryId !== entryId) return received;
  return {
    stdout: Math.max(received.stdout, hello.acked.stdout),
    stderr: Math.max(received.stderr, hello.acked.stderr),
  };
}

function total({ stdout, stderr }: Record<StreamName, number>): number {
  return stdout + stderr;
}

function refused(reason: string, { owner }: TurnDeps): Turned {
  if (reason === 'begun-before') return { type: 'lost' };
  const message = `The shell of session ${owner.keys.session} refused a command: ${reason}.`;
  return {
    type: 'failed',
    error: new ShellfleetError(reason === 'no-shell' ? 'SESSION_START_FAILED' : 'INTERNAL', message),
  };
}

function died(death: SandboxDeath | undefined, { owner, spec }: TurnDeps): Turned {
  const { session } = owner.keys;
  if (death?.reason === 'oom') {
    const { memoryBytes } = withDefaultLimits(spec.limits);
    const message = `The sandbox of session ${session} ran out of memory (limit ${memoryBytes} bytes). Raise limits.memoryBytes, or use less.`;
    return { type: 'failed', error: new ShellfleetError('CONTAINER_LOST', message, { reason: 'oom' }), reason: 'oom' };
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
