import { lookup } from 'node:dns/promises';
import { abortable } from '@shellfleet/concurrency';
import pLimit from 'p-limit';

export interface Address {
  address: string;
  family: 4 | 6;
}

export type ResolveName = (name: string, signal: AbortSignal) => Promise<Address[]>;

/** Each takes a thread of the process until the resolver of the system answers. There are four, and files need them too. */
const LOOKUPS = 2;

const ofHost = pLimit(LOOKUPS);

/**
 * For one session: the addresses of a name, by the resolver of the system. Rejects when there is none, or when the signal aborts. One name at a
 * time, so that a session whose names are never answered does not take the lookups of all others.
 */
export function createResolveName(find: (name: string) => Promise<Address[]> = findAddresses): ResolveName {
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
