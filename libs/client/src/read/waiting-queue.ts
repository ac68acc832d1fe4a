import { hostsFor, type PlacementClass, type QueuedSessions } from '@shellfleet/placement';
import type { HostBeat } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface QueueContext extends FleetContext {
  readonly sessions: Pick<QueuedSessions, 'waiting' | 'countHeld'>;
}

export interface WaitingQueue {
  /** Number of waiting sessions, counted only as far as positions are reported. */
  readonly length: number;
  /** Position from 1; undefined for a session that does not wait. */
  positionOf(jobId: string): number | undefined;
  /** Estimated wait in ms; undefined before any host has reported how long slots are held. */
  etaOf(position: number): number | undefined;
}

/** Reads the tenant's queue of each placement class, whose sessions wait for the hosts that offer the class. */
export async function readWaitingQueues(
  context: QueueContext & { readonly tenant: string },
  classes: ReadonlySet<PlacementClass>,
  beats: readonly HostBeat[],
): Promise<Map<PlacementClass, WaitingQueue>> {
  const lines = await Promise.all(
    [...classes].map(async (name): Promise<[PlacementClass, WaitingQueue]> => {
      const waiting = await context.sessions.waiting(name, context.tenant);
      const positions = new Map(waiting.map((jobId, index) => [jobId, index + 1]));
      const hosts = hostsFor(name, beats);
      return [
        name,
        {
          length: positions.size,
          positionOf: (jobId) => positions.get(jobId),
          etaOf: (position) => estimateWait(position, hosts),
        },
      ];
    }),
  );
  return new Map(lines);
}

type Slots = Pick<HostBeat, 'slots' | 'free' | 'draining'> & { heldMs?: number | undefined };

/** Estimates the wait, on the assumption that slots are freed as often as recently. */
export function estimateWait(position: number, hosts: readonly Slots[]): number | undefined {
  const open = hosts.filter(({ draining }) => !draining);
  const free = open.reduce((sum, host) => sum + host.free, 0);
  if (position <= free) return 0;
  const perMs = open.reduce((sum, { slots, heldMs }) => sum + (heldMs ? slots / heldMs : 0), 0);
  return perMs === 0 ? undefined : Math.round((position - free) / perMs);
}
