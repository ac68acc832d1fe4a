import { type Command, isShellfleetError, type Session, type SessionInfo } from '@shellfleet/client';

/** State of a command that has not ended. */
export const OPEN_STATES = ['queued', 'running', 'waiting for approval'] as const;

export interface CommandState {
  status: (typeof OPEN_STATES)[number];
  /** Why the command does not run, in words. */
  waitsFor?: string;
}

/** Reads the state of a command that has not ended. While Redis is away, `before` still holds. */
export async function readState(session: Session, command: Command, before: CommandState): Promise<CommandState> {
  try {
    return toState(await session.info(), command.id);
  } catch (error) {
    if (isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE') return before;
    throw error;
  }
}

function toState(info: SessionInfo, commandId: string): CommandState {
  if (info.heldCommandId === commandId) return { status: 'waiting for approval', waitsFor: 'the approval of a person' };
  if (info.runningCommandId === commandId) return { status: 'running' };
  return { status: 'queued', waitsFor: describeWait(info) };
}

function describeWait(info: SessionInfo): string {
  const { runningCommandId, heldCommandId, noHostReason, state, hostId, waitsFor, position, queueLength } = info;
  if (runningCommandId !== undefined) return `the end of ${runningCommandId}, which runs in this session`;
  if (heldCommandId !== undefined) return `${heldCommandId}, which waits for the approval of a person`;
  if (noHostReason !== undefined) return noHostReason;
  if (state === 'unreachable') return `its host ${hostId}, which does not answer`;
  if (waitsFor !== undefined) return waitsFor;
  if (position !== undefined) return `a slot (number ${position} of ${queueLength ?? position} in the queue)`;
  return 'the start of its shell';
}
