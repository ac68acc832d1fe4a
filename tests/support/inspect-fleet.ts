import { setTimeout as delay } from 'node:timers/promises';
import { hostKeys, sessionKeys } from '@shellfleet/protocol';
import { openRedis, parseRedisUrl } from '@shellfleet/redis';
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
import { keyspaceOf } from './keyspace.ts';
import type { TestFleet } from './start-fleet.ts';
import { until } from './until.ts';

interface SandboxContainer {
  id: string;
  session: string;
  hostId: string;
  state: string;
}

/** The state of a fleet, read directly from Redis and the engine instead of through its processes. */
export interface FleetInspector extends AsyncDisposable {
  readonly redis: Redis;
  readonly docker: Docker;
  containers(sessionId?: string): Promise<SandboxContainer[]>;
  /** The only container of a session. */
  container(sessionId: string): Promise<Docker.Container>;
  /**
   * Command lines of all processes in a session's container except the keeper and the shell, from the machine's process
   * table.
   */
  processes(sessionId: string): Promise<string[]>;
  /** Waits until the file exists in the container. */
  untilFile(container: Docker.Container, path: string): Promise<void>;
  events(sessionId: string): Promise<StreamEvent[]>;
  /** Waits until the stream of the session has output. */
  untilOutput(sessionId: string): Promise<void>;
  /**
   * Every invariant of a session's stream that does not hold, as a sentence. `accepted`: command ids that submitters
   * received.
   */
  broken(sessionId: string, accepted?: Iterable<string>, idempotent?: ReadonlySet<string>): Promise<string[]>;
  isAlive(hostId: string): Promise<boolean>;
}

/** Opens a connection whose calls wait while Redis is away. With a single Redis they wait without a deadline. */
function openPatiently(redisUrl: string): Redis {
  const address = parseRedisUrl(redisUrl);
  if (address.kind !== 'single') return openRedis(address, 'subscriber', 'inspector');
  return new Redis(redisUrl, { lazyConnect: true, maxRetriesPerRequest: null }).on('error', () => {});
}

export function inspectFleet({ namespace, redisUrl }: Pick<TestFleet, 'namespace' | 'redisUrl'>): FleetInspector {
  const redis = openPatiently(redisUrl);
  const docker = new Docker({ socketPath: inject('dockerHost').replace(/^unix:\/\//, '') });
  const events = (sessionId: string) => readEvents(redis, sessionKeys(keyspaceOf(namespace), 'default', sessionId));
  const containers = async (sessionId?: string): Promise<SandboxContainer[]> => {
    const label = [`shellfleet.namespace=${namespace}`];
    if (sessionId !== undefined) label.push(`shellfleet.session=${sessionId}`);
    const found = await docker.listContainers({ all: true, filters: { label } });
    return found.map(({ Id, Labels, State }) => ({
      id: Id,
      session: Labels['shellfleet.session'] ?? '',
      hostId: Labels['shellfleet.host'] ?? '',
      state: State,
    }));
  };
  const container = async (sessionId: string) => {
    const [only, ...others] = await containers(sessionId);
    if (only === undefined || others.length > 0)
      throw new Error(`Session ${sessionId} has ${others.length + (only === undefined ? 0 : 1)} containers, not one.`);
    return docker.getContainer(only.id);
  };
  return {
    redis,
    docker,
    events,
    containers,
    container,
    async processes(sessionId) {
      return listProcesses(await container(sessionId));
    },
    async untilFile(sandbox, path) {
      await until(
        () => exitCodeIn(sandbox, ['test', '-e', path]),
        (code) => code === 0,
      );
    },
    async untilOutput(sessionId) {
      await until(
        () => events(sessionId),
        (all) => all.some(({ type }) => type === 'command.output'),
      );
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
    isAlive: async (hostId) => (await redis.exists(hostKeys(keyspaceOf(namespace), hostId).alive)) === 1,
    async [Symbol.asyncDispose]() {
      redis.disconnect();
    },
  };
}

/** The keeper is the first process of the container, and the shell the only child of it that runs the keeper's loop. */
async function listProcesses(container: Docker.Container): Promise<string[]> {
  const { Processes } = await container.top({ ps_args: '-ww -o pid,ppid,stat,args' });
  const { State } = await container.inspect();
  const all = (Processes as string[][]).map(([pid, parent, state = '', line = '']) => ({ pid, parent, state, line }));
  return all
    .filter(({ pid, state }) => Number(pid) !== State.Pid && !state.startsWith('Z'))
    .filter(({ parent, line }) => !(Number(parent) === State.Pid && / -c \. \/proc\/self\/fd\/\d+ /.test(line)))
    .map(({ line }) => line)
    .sort();
}

async function exitCodeIn(container: Docker.Container, command: string[]): Promise<number | null> {
  const run = await container.exec({ Cmd: command, AttachStdout: true });
  const stream = await run.start({});
  stream.resume();
  await new Promise((resolve) => stream.once('end', resolve));
  // The engine may close the stream before it has recorded the exit code.
  for (;;) {
    const { Running, ExitCode } = await run.inspect();
    if (!Running) return ExitCode;
    await delay(10);
  }
}
