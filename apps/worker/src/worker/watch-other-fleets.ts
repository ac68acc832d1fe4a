import { repeat } from '@shellfleet/concurrency';
import { parseKeyspace } from '@shellfleet/protocol';
import type { HostServices } from '../run/host-services.ts';

const INTERVAL_MS = 60_000;

export interface OtherFleets {
  /** Warnings for the operator, one sentence for each place. */
  warnings(): string[];
  close(): Promise<void>;
}

/** Looks for other fleets of this namespace, at once and every minute until closed. Resolves after the first search. */
export async function watchOtherFleets(deps: HostServices): Promise<OtherFleets> {
  let warnings: string[] = [];
  const look = async () => {
    const before = warnings;
    // Failed searches are repeated in the next round.
    const found = await Promise.allSettled([describeContainers(deps), describeSubscribers(deps)]);
    warnings = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    for (const problem of warnings) if (!before.includes(problem)) deps.logger.warn({ problem }, 'fleet.another-found');
  };
  const rounds = repeat(look, { everyMs: INTERVAL_MS });
  await rounds.now();
  return { warnings: () => warnings, close: rounds.close };
}

async function describeContainers({ sandboxes, namespace: keyspace }: HostServices): Promise<string[]> {
  if (sandboxes.otherFleets === undefined || sandboxes.problem() !== undefined) return [];
  const { namespace } = parseKeyspace(keyspace);
  const found = await sandboxes.otherFleets();
  return found.map((fleetId) => {
    const whose = fleetId === '' ? 'a version without identities of fleets' : `the fleet ${fleetId}`;
    return `The Docker engine of this host also has containers of ${whose}, of the namespace ${namespace} too; \`shellfleet prune\` removes those that nobody owns.`;
  });
}

/** Describes other fleets that use this Redis. All its databases share the channels. */
async function describeSubscribers({ redis, namespace: keyspace }: HostServices): Promise<string[]> {
  const { namespace, fleetId } = parseKeyspace(keyspace);
  const channels = (await redis.pubsub('CHANNELS', `${namespace}:*:{x0}:wakeups`)) as string[];
  const others = channels.map((name) => parseKeyspace(name).fleetId).filter((other) => other !== fleetId);
  return [...new Set(others)]
    .sort()
    .map((other) => `The fleet ${other}, of the namespace ${namespace} too, uses another database of this Redis.`);
}
