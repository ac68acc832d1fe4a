import type { Fleet, SessionSpec } from '@shellfleet/client';
import { until } from './until.ts';

/** Submits a command to a session that no live host runs. Returns why no host runs it, and closes the session. */
export async function reasonToWait(fleet: Fleet, id: string, spec: SessionSpec): Promise<string> {
  const session = await fleet.session(id, spec);
  const command = await session.submit('echo never');
  const { noHostReason = '' } = await until(
    () => session.info(),
    (info) => info.noHostReason !== undefined,
  );
  await session.close();
  const { outcome, hostId, stdout } = await command.result();
  if (outcome !== 'cancellation' || hostId !== null || stdout !== '')
    throw new Error(`It ran: ${outcome} on ${hostId}`);
  return noHostReason;
}
