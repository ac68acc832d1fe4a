import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { workerNodeFlags } from '@shellfleet/setup';
import { compileWorker } from './compile-worker.ts';

export interface WorkerOptions {
  redisUrl: string;
  namespace: string;
  /** State directory of the worker, which the bench creates and removes. */
  directory: string;
  image: string;
  /** The engine's address. Not needed by the policy kubernetes. */
  dockerHost?: string;
  /** Execution policies, as the variable of a worker names them. Default: its own default. */
  policies?: string;
  slots: number;
  /** Modules with tools. */
  tools?: string[];
  /** Path of a configuration file. */
  configPath?: string;
  /** Port of the metrics. Default: none are kept. */
  metricsPort?: number | undefined;
}

/** Starts a worker as it is published, compiled, and resolves when it reports that it is ready. */
export async function startWorker(options: WorkerOptions, sealKeys: string[]): Promise<ChildProcess> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SHELLFLEET_'));
  const env = {
    ...Object.fromEntries(inherited),
    ...(options.dockerHost && { DOCKER_HOST: options.dockerHost }),
    ...(options.policies && { SHELLFLEET_POLICIES: options.policies }),
    SHELLFLEET_REDIS_URL: options.redisUrl,
    SHELLFLEET_NAMESPACE: options.namespace,
    SHELLFLEET_STATE_DIR: options.directory,
    SHELLFLEET_SLOTS: String(options.slots),
    SHELLFLEET_DEFAULT_IMAGE: options.image,
    SHELLFLEET_SEAL_KEY: sealKeys.join(','),
    SHELLFLEET_LOG_LEVEL: 'warn',
    ...(options.configPath && { SHELLFLEET_CONFIG: options.configPath }),
    ...(options.metricsPort && { SHELLFLEET_METRICS_PORT: String(options.metricsPort) }),
    ...(options.tools && { SHELLFLEET_TOOLS: options.tools.join(',') }),
  };
  const program = await compileWorker();
  // Options as on the command line. With the conditions of this process, the worker would load its packages from
  // source.
  const execArgv = [...workerNodeFlags, '--no-warnings'];
  const worker = fork(program, [], { env, execArgv, stdio: ['ignore', 2, 2, 'ipc'] });
  const ended = once(worker, 'exit').then(() => {
    throw new Error('the worker ended before it was ready');
  });
  await Promise.race([once(worker, 'message'), ended]);
  ended.catch(() => {});
  return worker;
}
