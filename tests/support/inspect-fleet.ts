import { hostKeys, sessionKeys } from '@shellfleet/protocol';
import Docker from 'dockerode';
import { Redis } from 'ioredis';
import { inject } from 'vitest';
import {
  idsOf,
  notAcceptedOnce,
  notCompletedOnce,
  outputGaps,
  overlapping,
  readEvents,
  type StreamEvent,
  startedOutOfOrder,
  startedTwice,
} from './invariants.ts';
import type { TestFleet } from './start-fleet.ts';

interface SandboxContainer {
  id: string;
  session: string;
  hostId: string;
  state: string;
}

/** A fleet seen from behind its back: what Redis and the engine say of it, whatever its processes do. */
export interface FleetInspector extends AsyncDisposable {
  readonly redis: Redis;
  readonly docker: Docker;
  containers(sessionId?: string): Promise<SandboxContainer[]>;
  events(sessionId: string): Promise<StreamEvent[]>;
  /** Every promise about a session's stream that is broken, in words. `accepted`: command ids that submitters were given. */
  broken(sessionId: string, accepted?: Iterable<string>, idempotent?: ReadonlySet<string>): Promise<string[]>;
  isAlive(hostId: string): Promise<boolean>;
}

export function inspectFleet({ namespace, redisUrl }: Pick<TestFleet, 'namespace' | 'redisUrl'>): FleetInspector {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null });
  redis.on('error', () => {});
  const docker = new Docker({ socketPath: inject('dockerHost').replace(/^unix:\/\//, '') });
  const events = (sessionId: string) => readEvents(redis, sessionKeys(namespace, 'default', sessionId));
  return {
    redis,
    docker,
    events,
    async containers(sessionId) {
      const label = [`shellfleet.namespace=${namespace}`];
      if (sessionId !== undefined) label.push(`shellfleet.session=${sessionId}`);
      const found = await docker.listContainers({ all: true, filters: { label } });
      return found.map(({ Id, Labels, State }) => ({
        id: Id,
        session: Labels['shellfleet.session'] ?? '',
        hostId: Labels['shellfleet.host'] ?? '',
        state: State,
      }));
    },
    async broken(sessionId, accepted = [], idempotent = new Set()) {
      const all = await events(sessionId);
      const entryIds = [...accepted].map((id) => id.slice(id.lastIndexOf('.') + 1));
      const again = new Set([...idempotent].map((id) => id.slice(id.lastIndexOf('.') + 1)));
      const unknown = entryIds.filter((id) => !idsOf(all, 'command.accepted').includes(id));
      return [
        ...unknown.map((id) => `${id} is not in the stream`),
        ...notAcceptedOnce(all),
        ...notCompletedOnce(all, entryIds),
        ...startedTwice(all, again),
        ...startedOutOfOrder(all),
        ...overlapping(all),
        ...outputGaps(all),
      ].map((problem) => `${sessionId}: ${problem}`);
    },
    isAlive: async (hostId) => (await redis.exists(hostKeys(namespace, hostId).alive)) === 1,
    async [Symbol.asyncDispose]() {
      redis.disconnect();
    },
  };
}
