import { setTimeout as delay } from 'node:timers/promises';
import { FleetHosts, readFleetFile } from '@shellfleet/client';
import type { FleetRecord } from './fleet-record.ts';

/** Longest wait for new heartbeats of the hosts, which is several of their intervals. */
const BEAT_WITHIN_MS = 3_000;
const POLL_MS = 100;

/** Sessions and commands of all tenants that would end with the workers of a fleet. */
export interface FleetUse {
  sessions: number;
  commands: number;
  /** Live hosts whose workers `up` did not start. These workers keep running, without Redis, when the fleet ends. */
  others: string[];
}

/** Returns the hosts whose workers `up` started. A worker that is not ready has no host yet. */
export function hostsOf({ workers }: FleetRecord): string[] {
  return workers.flatMap(({ hostId }) => hostId ?? []);
}

/** Connects to the fleet that the connection file names. Returns undefined if there is no such file or fleet. */
export async function connectToOwn(env: NodeJS.ProcessEnv): Promise<FleetHosts | undefined> {
  const file = await readFleetFile(env);
  return file && FleetHosts.connect(file.redisUrl, file.namespace);
}

/**
 * Reads the open sessions and running commands from new heartbeats of the fleet's hosts, or from the last heartbeats if
 * no new ones arrive.
 */
export async function readUse(fleet: FleetHosts, record: FleetRecord): Promise<FleetUse> {
  const own = hostsOf(record);
  const from = Date.now();
  let others: string[] = [];
  const readHosts = async () => {
    const all = await fleet.hosts();
    others = all.filter(({ id, state }) => !own.includes(id) && state !== 'unreachable').map(({ id }) => id);
    return all.filter(({ id }) => own.includes(id));
  };
  let hosts = await readHosts();
  const isOld = () => hosts.some(({ state, seenAt }) => state !== 'unreachable' && Date.parse(seenAt) < from);
  while (isOld() && Date.now() < from + BEAT_WITHIN_MS) {
    await delay(POLL_MS);
    hosts = await readHosts();
  }
  const sum = (of: 'sessions' | 'running') => hosts.reduce((total, host) => total + host[of], 0);
  return { sessions: sum('sessions'), commands: sum('running'), others };
}

/**
 * Reads the open sessions and running commands of the fleet. Returns undefined if this fails, for example without
 * Redis.
 */
export function tryToReadUse(record: FleetRecord, env: NodeJS.ProcessEnv): Promise<FleetUse | undefined> {
  return tryToRead(env, (fleet) => readUse(fleet, record));
}

/** Reads the protocol version of the fleet's keys. Returns undefined if this fails. */
export function readProtocol(env: NodeJS.ProcessEnv): Promise<number | undefined> {
  return tryToRead(env, async ({ protocol }) => protocol);
}

async function tryToRead<T>(env: NodeJS.ProcessEnv, read: (fleet: FleetHosts) => Promise<T>): Promise<T | undefined> {
  const fleet = await connectToOwn(env).catch(() => undefined);
  try {
    return fleet && (await read(fleet));
  } catch {
    return undefined;
  } finally {
    await fleet?.close();
  }
}

export function describeUse(use: FleetUse | undefined): string {
  if (use === undefined) return 'what is open in it could not be read';
  return `${count(use.sessions, 'open session')}, ${count(use.commands, 'running command')}`;
}

export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
