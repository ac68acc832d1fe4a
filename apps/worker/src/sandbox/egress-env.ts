import { EGRESS_PORT } from '@shellfleet/keeper';
import { EGRESS_FILE } from './session-directory.ts';

/** Proxy address for programs in the sandbox. The keeper relays this port to the proxy's socket. */
const PROXY = `http://127.0.0.1:${EGRESS_PORT}`;
const LOCAL = 'localhost,127.0.0.1,::1';

/**
 * Returns the variables of a limited network. `keeperDirectory` is the directory with the sockets, seen from the
 * sandbox.
 */
export function egressEnv(keeperDirectory: string): Record<string, string> {
  const both = (name: string, value: string) => ({ [name]: value, [name.toLowerCase()]: value });
  return {
    SF_EGRESS: `${keeperDirectory}/${EGRESS_FILE}`,
    ...both('HTTP_PROXY', PROXY),
    ...both('HTTPS_PROXY', PROXY),
    ...both('ALL_PROXY', PROXY),
    ...both('NO_PROXY', LOCAL),
    // Node's own fetch reads the other variables only if this variable is set.
    NODE_USE_ENV_PROXY: '1',
  };
}
