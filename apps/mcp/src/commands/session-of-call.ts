import type { Session } from '@shellfleet/client';
import { abortable } from '@shellfleet/concurrency';
import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import { z } from 'zod';
import { specOf } from '../settings.ts';
import type { ToolCall } from '../tools/tool-call.ts';
import { withinAnswer } from './within-answer.ts';

/** The argument `session` of most tools. */
export const sessionArgument = z
  .string()
  .optional()
  .describe(
    'Name of the session: 1 to 128 of A-Z a-z 0-9 . _ -. Default: the session of this connection, if it has one.',
  );

/** Opens the session that a call names, with the spec of the operator, or attaches to the open one of any spec. */
export async function openSessionOf(call: ToolCall, name: string | undefined): Promise<Session> {
  const id = nameOf(call, name);
  // A session that is still closing would keep the call waiting for a minute.
  return withinAnswer(call, `Session ${id} is not open yet.`, (signal) => abortable(open(call, id), signal));
}

async function open({ fleet, settings }: ToolCall, id: string): Promise<Session> {
  try {
    return await fleet.session(id, specOf(settings));
  } catch (error) {
    if (isShellfleetError(error) && error.code === 'SESSION_CONFLICT') return fleet.session(id);
    throw error;
  }
}

/** Returns the newest session of the name that a call gives. Opens none. Rejects with SESSION_NOT_FOUND. */
export async function findSessionOf(call: ToolCall, name: string | undefined): Promise<Session> {
  const id = nameOf(call, name);
  const session = await call.fleet.attach(id);
  if (session !== undefined) return session;
  throw new ShellfleetError('SESSION_NOT_FOUND', `There is no session ${id}. The tool exec opens it.`, {
    sessionId: id,
  });
}

function nameOf({ defaultSession }: ToolCall, name: string | undefined): string {
  const id = name ?? defaultSession;
  if (id !== undefined) return id;
  const message = 'is missing: choose a name, and give it with every call that is to use the same shell';
  throw new ShellfleetError('COMMAND_INVALID', `session ${message}.`, { issues: [{ path: 'session', message }] });
}
