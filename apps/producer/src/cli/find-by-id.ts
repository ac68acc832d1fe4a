import {
  type Fleet,
  type Command as FleetCommand,
  isShellfleetError,
  type Session,
  ShellfleetError,
} from '@shellfleet/client';

/** Finds the command, or else the session, with this id. */
export async function findById(fleet: Fleet, id: string): Promise<FleetCommand | Session> {
  return (await findCommand(fleet, id)) ?? (await findSession(fleet, id));
}

/** Returns the command with this id, or undefined if there is none, because the id is a session's, for example. */
async function findCommand(fleet: Fleet, id: string): Promise<FleetCommand | undefined> {
  try {
    return await fleet.command(id);
  } catch (error) {
    if (isShellfleetError(error) && ['COMMAND_INVALID', 'RESULT_EXPIRED'].includes(error.code)) return undefined;
    throw error;
  }
}

async function findSession(fleet: Fleet, id: string): Promise<Session> {
  const session = await fleet.attach(id);
  if (session !== undefined) return session;
  throw new ShellfleetError(
    'SESSION_NOT_FOUND',
    `There is no command and no session ${id}. \`shellfleet ps --all\` lists sessions.`,
    { id },
  );
}
