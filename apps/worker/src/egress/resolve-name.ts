import { lookup } from 'node:dns/promises';
import { abortable } from '@shellfleet/concurrency';
import pLimit from 'p-limit';

export interface Address {
  address: string;
  family: 4 | 6;
}

export type ResolveName = (name: string, signal: AbortSignal) => Promise<Address[]>;

/** Parallel lookups. Each blocks one of the process's four threads, which files need too. */
const LOOKUPS = 2;

export type LimitLookups = <T>(look: () => Promise<T>) => Promise<T>;

export const limitLookups = (most: number): LimitLookups => pLimit(most);
const ofWorker = limitLookups(LOOKUPS);

/**
 * Creates the resolver of one session, which rejects if a name has no address or the signal aborts. It looks up one
 * name at a time, so that names without a reply do not block the lookups of other sessions.
 */
export function createResolveName(
  find: (name: string) => Promise<Address[]> = findAddresses,
  ofHost: LimitLookups = ofWorker,
): ResolveName {
  const ofSession = pLimit(1);
  return (name, signal) => {
    const look = async () => {
      signal.throwIfAborted();
      return find(name);
    };
    return abortable(
      ofSession(() => ofHost(look)),
      signal,
    );
  };
}

async function findAddresses(name: string): Promise<Address[]> {
  const found = await lookup(name, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }) as const);
}
