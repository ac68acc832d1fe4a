import type { HostInfo } from '@shellfleet/client';
import type { SharedSettings } from './worker-env.ts';

interface RunningSettings {
  workers: number;
  /** Hosts of the fleet's own workers, without those of a worker that starts. */
  hosts: readonly Pick<HostInfo, 'slots' | 'policies'>[];
}

/**
 * Returns the message about options of `up` that a running fleet does not follow, with the step that applies them, or
 * undefined if the fleet has all of the values.
 */
export function describeKept(
  { workers, slots, policies }: SharedSettings & { workers?: number },
  running: RunningSettings,
): string | undefined {
  const differing = [
    describe('--workers', workers, [running.workers]),
    describe(
      '--slots',
      slots,
      running.hosts.map((host) => host.slots),
    ),
    describe(
      '--policies',
      policies && toNames(policies.split(',')),
      running.hosts.map((host) => toNames(host.policies)),
    ),
  ].filter((text) => text !== undefined);
  if (differing.length === 0) return undefined;
  return `The running fleet keeps its own settings: ${differing.join('; ')}. \`shellfleet up --replace\` with the same options starts a fleet that has them, and ends the sessions of this one.`;
}

/** Returns an option with the other values of the fleet, or undefined if it was not given or makes no difference. */
function describe<T extends string | number>(option: string, asked: T | undefined, kept: T[]): string | undefined {
  const others = [...new Set(kept)].filter((value) => value !== asked);
  if (asked === undefined || others.length === 0) return undefined;
  return `${option} is ${others.join(' and ')} there, not ${asked}`;
}

/** Returns names in one order, so that the same policies are the same text. */
const toNames = (names: readonly string[]) =>
  names
    .map((name) => name.trim())
    .sort()
    .join(',');
