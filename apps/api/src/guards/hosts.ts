import { type AllowedHosts, isOwnHost } from '@shellfleet/access';
import { HttpProblem } from '../problems/http-problem.ts';

/** Throws if a request addresses the server by no name, or by one that is not its own. */
export function requireOwnHost(header: string | undefined, allowed: AllowedHosts): void {
  if (header === undefined)
    throw new HttpProblem(400, 'COMMAND_INVALID', 'The request has no header Host. Send one that names this server.');
  if (isOwnHost(header, allowed)) return;
  const message = 'The server does not answer to this Host. SHELLFLEET_API_ALLOWED_HOSTS lists further names.';
  throw new HttpProblem(421, 'UNAUTHORIZED', message);
}
