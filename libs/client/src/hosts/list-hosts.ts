import { type HostInfo, hostBeatSchema, hostKeys, tryJson } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';

/**
 * Returns the registered hosts, with their last heartbeats. A host that has left is not listed until it is up again.
 */
export async function listHosts(context: FleetContext): Promise<HostInfo[]> {
  try {
    const seen = await context.redis.zrange(context.fleet.hosts, '0', '-1', 'WITHSCORES');
    const ids = seen.filter((_value, index) => index % 2 === 0);
    const found = await Promise.all(
      ids.map(async (id, index) => {
        const { alive, cordon, left } = hostKeys(context.namespace, id);
        const [beat = null, hasLeft, cordoned] = await context.redis.mget(alive, left, cordon);
        if (beat === null && hasLeft !== null) return [];
        const info = toHostInfo(id, Number(seen[index * 2 + 1]), beat);
        return cordoned === null ? [info] : [{ ...info, cordoned: true as const }];
      }),
    );
    return found.flat().sort(byId);
  } catch (error) {
    throw toQueueError(error);
  }
}

function toHostInfo(id: string, seenMs: number, beat: string | null): HostInfo {
  const seenAt = new Date(seenMs).toISOString();
  const parsed = hostBeatSchema.safeParse(tryJson(beat));
  if (!parsed.success)
    return {
      ...{ id, state: 'unreachable', slots: 0, free: 0, sessions: 0, running: 0, policies: [], version: '' },
      ...{ commandsPerSecond: 0, configuration: 0, seenAt },
    };
  const { slots, free, sessions, running, held, policies, version, draining, problems, warnings, labels } = parsed.data;
  const { commandsPerSecond, configuration, gate, pulls, pools } = parsed.data;
  const info = {
    id,
    state: draining ? 'draining' : 'up',
    slots,
    free,
    sessions,
    running,
    commandsPerSecond,
    policies,
    version,
    configuration,
    seenAt,
  } as const;
  return {
    ...info,
    ...(held === 0 ? {} : { held }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(gate === undefined ? {} : { gate }),
    ...(problems.length === 0 ? {} : { problems }),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(pulls.length === 0 ? {} : { pulls }),
    ...(pools.length === 0 ? {} : { pools }),
  };
}

const byId = (a: HostInfo, b: HostInfo) => (a.id < b.id ? -1 : 1);
