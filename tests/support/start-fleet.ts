import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectOptions, Fleet } from '@shellfleet/client';
import { workerNodeFlags } from '@shellfleet/setup';
import Docker from 'dockerode';
import { inject } from 'vitest';
import { declareTestFleet, keyspaceOf, readKeyspace } from './keyspace.ts';

/**
 * Module that every worker loads. It ends the worker with its parent, so that a killed test run leaves no workers and
 * no containers. As a TypeScript file it would cost 40 ms.
 */
const endWithParent = `data:text/javascript,process.on('disconnect', () => process.kill(process.pid, 'SIGINT'));`;
/** A worker that has not ended its sessions in this time is killed. */
const END_WITHIN_MS = 30_000;

export interface FleetOptions {
  /**
   * Namespace that another fleet has too. This fleet then gets a random identity from its first worker. Default: a new
   * namespace.
   */
  namespace?: string;
  workers?: number;
  slots?: number;
  transport?: 'auto' | 'socket' | 'attach';
  /** URL of a Redis that the test may stop. Default: the Redis of the run. */
  redisUrl?: string;
  /** Called with the namespace before the first process uses it. */
  onNamespace?(namespace: string): Promise<void>;
  /** Variables of every worker. */
  env?: Record<string, string>;
  /** Program of the workers. Default: the bundled worker of the run. */
  program?: string;
  /** Further variables of single workers, by index. */
  envs?: readonly Record<string, string>[];
  /** The machine of the fleet. Default: the machine of the test run. */
  machine?: FleetMachine;
}

/** What a fleet runs on. */
export interface FleetMachine {
  redisUrl: string;
  dockerHost: string;
  sessionImage: string;
  /** Path of the worker. */
  worker: string;
}

const machineOfRun = (): FleetMachine => ({
  redisUrl: inject('redisUrl'),
  dockerHost: inject('dockerHost'),
  sessionImage: inject('sessionImage'),
  worker: inject('programs').worker,
});

/** A worker in a process of its own. */
export interface TestWorker {
  readonly hostId: string;
  readonly pid: number;
  /** Everything that its processes have logged so far. */
  readonly log: string;
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGKILL and waits until the process has ended. */
  kill(): Promise<void>;
  /** Sends the signal and waits until the process has ended. */
  stop(signal: NodeJS.Signals): Promise<void>;
  /**
   * Starts a new process with the same host id and state directory. `env` replaces some of its settings from now on.
   */
  start(env?: Record<string, string>): Promise<void>;
}

export interface TestFleet extends AsyncDisposable {
  readonly fleet: Fleet;
  readonly namespace: string;
  /** Prefix of the fleet's keys and channels in Redis. */
  readonly keyspace: string;
  readonly redisUrl: string;
  /** Seal key, for producers in other processes. */
  readonly sealKey: string;
  /** The state directory of its hosts. */
  readonly stateDirectory: string;
  readonly workers: TestWorker[];
  /** A further producer with connections of its own. */
  connect(options?: Pick<ConnectOptions, 'tenant' | 'signingKey' | 'caller'>): Promise<Fleet>;
  /**
   * Ends the producers, and ends the workers with SIGINT, which also ends their sessions. No container should be left.
   */
  end(): Promise<void>;
}

/**
 * A fleet for one test: its own namespace and hosts, on the Redis and the engine of the run. Disposing of it ends it
 * and removes the rest, also after a failed test.
 */
export async function startFleet(options: FleetOptions = {}): Promise<TestFleet> {
  const namespace = options.namespace ?? `t-${randomBytes(5).toString('hex')}`;
  const machine = options.machine ?? machineOfRun();
  const redisUrl = options.redisUrl ?? machine.redisUrl;
  await options.onNamespace?.(namespace);
  if (options.namespace === undefined) await declareTestFleet(redisUrl, namespace);
  const sealKey = randomBytes(32).toString('base64');
  // Short, because the paths of unix sockets are below it.
  const stateDirectory = await mkdtemp(join(tmpdir(), 'sf-'));
  const env = {
    ...process.env,
    DOCKER_HOST: machine.dockerHost,
    SHELLFLEET_REDIS_URL: redisUrl,
    SHELLFLEET_NAMESPACE: namespace,
    SHELLFLEET_SEAL_KEY: sealKey,
    SHELLFLEET_STATE_DIR: stateDirectory,
    SHELLFLEET_DEFAULT_IMAGE: machine.sessionImage,
    SHELLFLEET_SLOTS: String(options.slots ?? 10),
    SHELLFLEET_TRANSPORT: options.transport ?? 'socket',
    SHELLFLEET_LOG_LEVEL: 'debug',
    ...options.env,
  };
  const producers: Fleet[] = [];
  const connect = async (options: Pick<ConnectOptions, 'tenant' | 'signingKey' | 'caller'> = {}) => {
    const producer = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey], ...options });
    producers.push(producer);
    return producer;
  };
  const workers = Array.from({ length: options.workers ?? 1 }, (_, index) =>
    createTestWorker(`h${index + 1}`, { ...env, ...options.envs?.[index] }, options.program ?? machine.worker),
  );
  let ended: Promise<void> | undefined;
  const end = () => {
    ended ??= endAll(producers, workers);
    return ended;
  };
  const removeLeftovers = async () => {
    await removeFromEngine(namespace, machine.dockerHost);
    await rm(stateDirectory, { recursive: true, force: true });
  };
  const started = await Promise.allSettled(workers.map((worker) => worker.start()));
  const failed = started.find((start) => start.status === 'rejected');
  if (failed !== undefined) {
    await Promise.all(workers.map((worker) => worker.kill()));
    await removeLeftovers();
    throw failed.reason;
  }
  const fleet = await connect();
  return {
    fleet,
    namespace,
    keyspace: options.namespace === undefined ? keyspaceOf(namespace) : await readKeyspace(redisUrl, namespace),
    redisUrl,
    sealKey,
    stateDirectory,
    workers,
    connect,
    end,
    [Symbol.asyncDispose]: () => end().finally(removeLeftovers),
  };
}

async function endAll(producers: Fleet[], workers: EndingWorker[]): Promise<void> {
  await Promise.allSettled(producers.map((producer) => producer.close()));
  const ends = await Promise.allSettled(workers.map((worker) => worker.end()));
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/**
 * Removes containers that are left because no worker ended their sessions, and the fleet's network, which no worker
 * removes.
 */
async function removeFromEngine(namespace: string, dockerHost: string): Promise<void> {
  const docker = new Docker({ socketPath: dockerHost.replace(/^unix:\/\//, '') });
  const filters = { label: [`shellfleet.namespace=${namespace}`] };
  const left = await docker.listContainers({ all: true, filters });
  await Promise.allSettled(left.map(({ Id }) => docker.getContainer(Id).remove({ force: true })));
  const networks = await docker.listNetworks({ filters });
  await Promise.allSettled(networks.map(({ Id }) => docker.getNetwork(Id).remove()));
}

interface EndingWorker extends TestWorker {
  end(): Promise<void>;
}

function createTestWorker(hostId: string, baseEnv: NodeJS.ProcessEnv, program: string): EndingWorker {
  const env: NodeJS.ProcessEnv = { ...baseEnv, SHELLFLEET_HOST_ID: hostId };
  let child: ChildProcess | undefined;
  let log = '';

  const start = async (changed: Record<string, string> = {}) => {
    Object.assign(env, changed);
    const args = [
      ...workerNodeFlags,
      '--conditions=@shellfleet/source',
      '--no-warnings',
      '--import',
      endWithParent,
      program,
    ];
    const started = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    for (const stream of [started.stdout, started.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        log += chunk.toString();
      });
    }
    child = started;
    const ended = once(started, 'exit').then(([code]) => {
      throw new Error(`The worker ${hostId} ended with ${code} before it was ready:\n${log}`);
    });
    await Promise.race([once(started, 'message'), ended]);
    ended.catch(() => {});
  };

  const isRunning = () => child !== undefined && child.exitCode === null && child.signalCode === null;

  const stop = async (signal: NodeJS.Signals) => {
    if (child === undefined || !isRunning()) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };

  return {
    hostId,
    get pid() {
      return child?.pid ?? -1;
    },
    get log() {
      return log;
    },
    signal: (signal) => child?.kill(signal),
    kill: () => stop('SIGKILL'),
    stop,
    start,
    /** Starts a worker that the test has killed once more, because only a worker ends its host's sessions. */
    async end() {
      const ending = async () => {
        if (!isRunning()) await start();
        child?.kill('SIGCONT');
        await stop('SIGINT');
        return true;
      };
      const inTime = await Promise.race([ending(), delay(END_WITHIN_MS, false, { ref: false })]);
      if (inTime) return;
      await stop('SIGKILL');
      throw new Error(`The worker ${hostId} did not end within ${END_WITHIN_MS} ms:\n${log}`);
    },
  };
}
