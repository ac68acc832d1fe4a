import type { IncomingMessage } from 'node:http';
import { localhostAllowedOrigins, validateOriginHeader } from '@modelcontextprotocol/server';
import { type Access, isOwnHost, type Principal } from '@shellfleet/access';
import { isShellfleetError } from '@shellfleet/protocol';
import type { HttpSettings } from './http-settings.ts';

/** Why a request is refused. */
export interface RefusedRequest {
  status: number;
  code: string;
  message: string;
}

/** Path at which the server is found. */
export const MCP_PATH = '/mcp';

/**
 * Returns the caller of a request, or why it is refused. Host and origin come first, so that a page of a browser, whose
 * name was made to point here, learns nothing.
 */
export async function admitRequest(
  { headers, url = '' }: IncomingMessage,
  access: Access,
  { host, allowedHosts }: HttpSettings,
): Promise<Principal | RefusedRequest> {
  if (!isOwnHost(headers.host, { bound: host, names: allowedHosts }))
    return refusal(421, 'UNAUTHORIZED', 'The server does not answer to this Host; --allowed-host names further ones.');
  if (!validateOriginHeader(headers.origin, [...localhostAllowedOrigins(), ...allowedHosts]).ok)
    return refusal(403, 'UNAUTHORIZED', 'Pages of this origin may not use the server.');
  if (url.split('?')[0] !== MCP_PATH) return refusal(404, 'COMMAND_INVALID', `The server is at ${MCP_PATH}.`);
  const [, token] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  try {
    const principal = token === undefined ? undefined : await access.authenticate(token);
    return principal ?? refusal(401, 'UNAUTHORIZED', 'Give an API key of the fleet as a bearer token.');
  } catch (error) {
    if (!isShellfleetError(error)) throw error;
    // The text of the error names Redis or the issuer, and the caller has shown no key that works.
    return refusal(503, error.code, 'Keys cannot be checked now. Repeat the request.');
  }
}

const refusal = (status: number, code: string, message: string): RefusedRequest => ({ status, code, message });
