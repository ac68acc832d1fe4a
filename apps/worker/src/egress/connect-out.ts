import { connect, type LookupFunction, type Socket } from 'node:net';
import { checkDestination, type Destination, type ProxyRefusal } from './destination.ts';
import type { Address, ResolveName } from './resolve-name.ts';

const RESOLVE_WITHIN_MS = 10_000;
const CONNECT_WITHIN_MS = 15_000;
/** Bytes that this process buffers for each direction of a connection. */
export const BUFFER_BYTES = 16 * 1024;

export interface OutwardRules {
  /** Hosts that the session's spec lists. */
  allowedHosts: readonly string[];
  /** Hosts that the operator lists. */
  hosts: readonly string[];
  mayConnectTo(address: string): boolean;
  resolveName: ResolveName;
}

/** Resolves an allowed name once, checks every address, and connects only to those, whatever the name means later. */
export async function connectOut(
  destination: Destination,
  rules: OutwardRules,
  signal: AbortSignal,
): Promise<Socket | ProxyRefusal> {
  const refusal = checkDestination(destination, rules);
  if (refusal !== undefined) return refusal;
  const resolving = AbortSignal.any([signal, AbortSignal.timeout(RESOLVE_WITHIN_MS)]);
  const found = await rules.resolveName(destination.name, resolving).catch(() => undefined);
  if (found === undefined || found.length === 0) return { status: 502, reason: 'its name could not be resolved' };
  const addresses = found.filter(({ address }) => rules.mayConnectTo(address));
  if (addresses.length === 0)
    return { status: 403, reason: 'it is at a private address, and the operator of the host does not list that' };
  return open(destination, addresses, AbortSignal.any([signal, AbortSignal.timeout(CONNECT_WITHIN_MS)]));
}

async function open(
  { name, port }: Destination,
  addresses: Address[],
  signal: AbortSignal,
): Promise<Socket | ProxyRefusal> {
  const lookup: LookupFunction = (_name, _options, answer) => answer(null, addresses);
  const socket = connect({ host: name, port, lookup, autoSelectFamily: true, ...BOUNDED });
  return new Promise((resolve) => {
    const refuse = (why: string) => {
      signal.removeEventListener('abort', abort);
      socket.destroy();
      resolve({ status: 502, reason: `it could not be reached: ${why}` });
    };
    const abort = () => refuse('it took too long');
    const onError = (error: Error) => refuse((error as NodeJS.ErrnoException).code ?? error.message);
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.on('error', onError);
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort);
      // The caller adds its own error listener before another error can occur. This listener stays, and does no harm.
      resolve(socket);
    });
  });
}

const BOUNDED = { highWaterMark: BUFFER_BYTES };
