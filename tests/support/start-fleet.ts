import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Fleet } from '@shellfleet/client';
import { inject } from 'vitest';

const workerMain = fileURLToPath(new URL('../../apps/worker/src/main.ts', import.meta.url));
const endWithParent = new URL('./end-with-parent.ts', import.meta.url).href;

export interface FleetOptions {
  workers?: number;
  slots?: number;
  transport?: 'socket' | 'attach';
  /** Another Redis than the run's: for tests that stop it. */
  redisUrl?: string;
  env?: Record<string, string>;
  /** What a worker has besides, by its number. */
  envs?: readonly Record<string, string>[];
}

/** One worker as its own process: what a host is, seen from outside. */
export interface TestWorker {
  readonly hostId: string;
  readonly pid: number;
  /** Everything it has logged, over all its lives. */
  readonly log: string;
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** Sends the signal, and waits until it is gone. */
  stop(signal: NodeJS.Signals): Promise<void>;
  /** A new process with the same host id and state folder; `env` replaces some of its settings from now on. */
  start(env?: Record<string, string>): Promise<void>;
}

export interface TestFleet extends AsyncDisposable {
  readonly fleet: Fleet;
  readonly namespace: string;
  readonly redisUrl: string;
  /** Seals what is sent: for producers in processes of their own. */
  readonly sealKey: string;
  /** Where its hosts keep what they write. */
  readonly stateFolder: string;
  readonly workers: TestWorker[];
  /** Another producer, as another process would be. */
  connect(options?: { tenant?: string }): Promise<Fleet>;
}

/** A fleet of its own for one test: own namespace, own hosts, the run's Redis and engine. It ends with everything that it made. */
export async function startFleet(options: FleetOptions = {}): Promise<TestFleet> {
  const namespace = `t-${randomBytes(5).toString('hex')}`;
  const redisUrl = options.redisUrl ?? inject('redisUrl');
  const sealKey = randomBytes(32).toString('base64');
  // Short: unix sockets lie below it.
  const stateFolder = await mkdtemp(join(tmpdir(), 'sf-'));
  const env = {
    ...process.env,
    DOCKER_HOST: inject('dockerHost'),
    SHELLFLEET_REDIS_URL: redisUrl,
    SHELLFLEET_NAMESPACE: namespace,
    SHELLFLEET_SEAL_KEY: sealKey,
    SHELLFLEET_STATE_DIR: stateFolder,
    SHELLFLEET_DEFAULT_IMAGE: inject('sessionImage'),
    SHELLFLEET_SLOTS: String(options.slots ?? 8),
    SHELLFLEET_TRANSPORT: options.transport ?? 'socket',
    SHELLFLEET_LOG_LEVEL: 'debug',
    ...options.env,
  };
  const producers: Fleet[] = [];
  const connect = async (options: { tenant?: string } = {}) => {
    const producer = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey], ...options });
    producers.push(producer);
    return producer;
  };
  const workers = Array.from({ length: options.workers ?? 1 }, (_, index) =>
    createTestWorker(`h${index + 1}`, { ...env, ...options.envs?.[index] }),
  );
  const dispose = async () => {
    await Promise.allSettled(producers.map((producer) => producer.close()));
    await Promise.all(workers.map((worker) => worker.end()));
    await rm(stateFolder, { recursive: true, force: true });
  };
  const started = await Promise.allSettled(workers.map((worker) => worker.start()));
  const failed = started.find((start) => start.status === 'rejected');
  if (failed !== undefined) {
    await Promise.all(workers.map((worker) => worker.kill()));
    await rm(stateFolder, { recursive: true, force: true });
    throw failed.reason;
  }
  const fleet = await connect();
  return {
    fleet,
    namespace,
    redisUrl,
    sealKey,
    stateFolder,
    workers,
    connect,
    [Symbol.asyncDispose]: dispose,
  };
}

function createTestWorker(hostId: string, baseEnv: NodeJS.ProcessEnv): TestWorker & { end(): Promise<void> } {
  const env: NodeJS.ProcessEnv = { ...baseEnv, SHELLFLEET_HOST_ID: hostId };
  let child: ChildProcess | undefined;
  let log = '';

  const start = async (changed: Record<string, string> = {}) => {
    Object.assign(env, changed);
    const args = ['--conditions=@shellfleet/source', '--no-warnings', '--import', endWithParent, workerMain];
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
    /** Its sessions end with it: a test leaves no container behind. */
    async end() {
      if (!isRunning()) await start();
      child?.kill('SIGCONT');
      await stop('SIGINT');
    },
  };
}
