import type { BatchKeys, FleetKeys } from '@shellfleet/protocol';
import { runScript, type Script, type ScriptArgument } from '@shellfleet/redis';
import type { Sealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';

/** A detached batch, with what each call about it needs. */
export interface BatchAccess {
  redis: Redis;
  sealer: Sealer;
  fleet: FleetKeys;
  keys: BatchKeys;
}

/** Function that may repeat a call of Redis. */
export type Retry = <T>(call: () => Promise<T>) => Promise<T>;

export const callOnce: Retry = (call) => call();

/** The lease of the one driver of a batch. Its calls are made one after another. */
export interface BatchLease extends BatchAccess {
  /** Id of the submission. */
  id: string;
  fence: number;
  host: string;
  /** Number of the next piece of the result lines. */
  next: number;
  /** Number of drivers in a row, with this one, that got the lease and have stored no line. */
  takes: number;
}

/** Name of a batch in the lists of the fleet. */
export const batchMember = ({ tenant, name }: { tenant: string; name: string }): string => `${tenant} ${name}`;

export function runOnBatch({ redis, keys }: BatchAccess, script: Script, args: ScriptArgument[]): Promise<unknown> {
  return runScript(redis, script, [keys.state, keys.tasks, keys.files, keys.results, keys.outputs], args);
}
