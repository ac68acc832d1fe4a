import { resolveSandbox } from '@shellfleet/policy';
import {
  type CommandPayload,
  isMovable,
  type NetworkAccess,
  type ResolvedSessionSpec,
  ShellfleetError,
} from '@shellfleet/protocol';

const BREADTH: Record<NetworkAccess, number> = { restricted: 0, limited: 1, full: 2 };

/** Returns the session's network, or a narrower one that its proxy can enforce. Throws SANDBOX_UNAVAILABLE. */
export function networkOf({ network: asked }: CommandPayload, spec: ResolvedSessionSpec): NetworkAccess {
  const { network } = resolveSandbox(spec);
  if (asked === undefined || asked === network) return network;
  if (BREADTH[asked] > BREADTH[network])
    throw refused(`the session has the network '${network}', and one command cannot have the wider '${asked}'`);
  if (network === 'full')
    throw refused(`the session has the network 'full', which cannot be narrowed to '${asked}' for one command`);
  if (isMovable(spec.policy.type))
    throw refused(`the proxy of Pods does not know of commands, so none has the narrower network '${asked}'`);
  return asked;
}

function refused(message: string): ShellfleetError {
  const sentence = `The command was not run: ${message}. Open a session with the network that it needs.`;
  return new ShellfleetError('SANDBOX_UNAVAILABLE', sentence, { issues: [{ path: 'network', message }] });
}
