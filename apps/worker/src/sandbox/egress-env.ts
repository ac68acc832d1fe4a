import { EGRESS_PORT } from '@shellfleet/keeper';
import { EGRESS_FILE } from './session-folder.ts';

/** Programs that connect to the proxy by themselves look here; the keeper relays the port to the proxy's socket. */
const PROXY = `http://127.0.0.1:${EGRESS_PORT}`;
const LOCAL = 'localhost,127.0.0.1,::1';

/** Variables of a sandbox whose network is limited. `keeperFolder`: where it sees the folder with the sockets. */
export function egressEnv(keeperFolder: string): Record<string, string> {
  const both = (name: string, value: string) => ({ [name]: value, [name.toLowerCase()]: value });
  return {
    SF_EGRESS: `${keeperFolder}/${EGRESS_FILE}`,
    ...both('HTTP_PROXY', PROXY),
    ...both('HTTPS_PROXY', PROXY),
    ...both('ALL_PROXY', PROXY),
    ...both('NO_PROXY', LOCAL),
    // The own fetch of Node looks at the others only with this one.
    NODE_USE_ENV_PROXY: '1',
  };
}
