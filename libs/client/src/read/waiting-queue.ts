import { hostsFor, type Place, type PlacementClass, type QueuedSessions } from '@shellfleet/placement';
import { type HostBeat, type SessionInfo, type SessionKeys, sessionsQueue } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface QueueContext extends FleetContext {
  readonly sessions: Pick<QueuedSessions, 'places' | 'countHeld'>;
}

interface Queued {
  keys: SessionKeys;
  placementClass: PlacementClass | undefined;
}

/** Part of the info of a session that waits for a slot. */
export type Waiting = Pick<SessionInfo, 'position' | 'queueLength' | 'etaMs'>;

/**
 * Finds the places of sessions in the order in which slots are given. Counted are all sessions that the same hosts
 * could take. Returns them by the sessions' `member`; a session that does not wait has none.
 */
export async function readWaiting(
  { sessions }: QueueContext,
  queued: readonly Queued[],
  beats: readonly HostBeat[],
): Promise<Map<string, Waiting>> {
  const lines = new Map<string, { placementClass: PlacementClass; all: SessionKeys[] }>();
  for (const { keys, placementClass } of queued) {
    if (placementClass === undefined) continue;
    const name = sessionsQueue(placementClass, keys.tenant);
    const line = lines.get(name) ?? { placementClass, all: [] };
    lines.set(name, line);
    line.all.push(keys);
  }
  const found = new Map<string, Waiting>();
  await Promise.all(
    [...lines.values()].map(async ({ placementClass, all }) => {
      const hosts = hostsFor(placementClass, beats);
      const places = await sessions.places(all, placementClass, hosts);
      for (const [index, { member }] of all.entries()) {
        const place = places[index];
        if (place !== undefined) found.set(member, toWaiting(place, hosts));
      }
    }),
  );
  return found;
}

function toWaiting(place: Place, hosts: readonly Slots[]): Waiting {
  const etaMs = estimateWait(place, hosts);
  return { position: place.position, queueLength: place.length, ...(etaMs === undefined ? {} : { etaMs }) };
}

type Slots = Pick<HostBeat, 'slots' | 'free' | 'draining' | 'gate'> & { heldMs?: number | undefined };

/**
 * Estimates the wait, on the assumption that slots are freed as often as recently. A session above its tenant's quota
 * also waits until enough of the tenant's sessions have ended.
 */
export function estimateWait(
  { position, overQuota, quota }: Pick<Place, 'position' | 'overQuota' | 'quota'>,
  hosts: readonly Slots[],
): number | undefined {
  const open = hosts.filter(({ draining }) => !draining);
  const free = open.reduce((sum, host) => sum + usableSlots(host), 0);
  const measured = open.filter(({ heldMs }) => heldMs);
  const perMs = measured.reduce((sum, { slots, heldMs = 1 }) => sum + slots / heldMs, 0);
  const slots = measured.reduce((sum, host) => sum + host.slots, 0);
  const behind = Math.max(0, position - free);
  if (behind === 0 && overQuota === 0) return 0;
  if (perMs === 0) return undefined;
  const forQuota = overQuota === 0 ? 0 : overQuota / ((perMs / slots) * (quota ?? 1));
  return Math.round(Math.max(behind / perMs, forQuota));
}

/**
 * Returns the free slots of a host for tenants that hold much there: none if its gate is closed, and none of its last
 * eighth. A session that may have one of these does not wait for long.
 */
function usableSlots({ slots, free, gate }: Slots): number {
  return gate?.reason ? 0 : Math.max(0, free - Math.floor(slots / 8));
}
