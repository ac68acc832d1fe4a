import { EGRESS_PORT } from '@shellfleet/keeper';
import { proxyVariables } from '@shellfleet/policy';
import { EGRESS_FILE } from './session-directory.ts';

/** Proxy address for programs in the sandbox. The keeper relays this port to the proxy's socket. */
const PROXY = `http://127.0.0.1:${EGRESS_PORT}`;

/**
 * Returns the variables of a limited network. `keeperDirectory` is the directory with the sockets, seen from the
 * sandbox.
 */
export function egressEnv(keeperDirectory: string): Record<string, string> {
  return { SF_EGRESS: `${keeperDirectory}/${EGRESS_FILE}`, ...proxyVariables(PROXY) };
}
