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

const limit = pLimit(LOOKUPS);

/** The addresses of a name, by the resolver of the system. Rejects when there is none, or when the signal aborts. */
export const resolveName: ResolveName = (name, signal) =>
  abortable(
    limit(async () => {
      signal.throwIfAborted();
      const found = await lookup(name, { all: true });
      return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }) as const);
    }),
    signal,
  );
