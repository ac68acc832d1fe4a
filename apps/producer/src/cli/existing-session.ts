import { type Fleet, type Session, ShellfleetError } from '@shellfleet/client';

/** Returns an open session. Throws if no session of this id is open, because the id is then most likely misspelt. */
export async function existingSession(fleet: Fleet, id: string): Promise<Session> {
  const session = await fleet.attach(id);
  const info = await session?.info();
  if (session !== undefined && info?.state !== 'closed') return session;
  throw new ShellfleetError(
    'SESSION_NOT_FOUND',
    `There is no open session ${id}. \`shellfleet ps\` lists the sessions; \`shellfleet exec ${id} -- true\` opens it.`,
    { sessionId: id },
  );
}
