import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';

export interface WorkerOptions {
  redisUrl: string;
  namespace: string;
  /** The worker's state folder, owned by the bench. */
  folder: string;
  image: string;
  dockerHost: string;
  slots: number;
  /** Modules with tools. */
  tools?: string[];
}

/** Starts a worker from source, and resolves when it reports that it is ready. */
export async function startWorker(options: WorkerOptions, sealKeys: string[]): Promise<ChildProcess> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SHELLFLEET_'));
  const env = {
    ...Object.fromEntries(inherited),
    DOCKER_HOST: options.dockerHost,
    SHELLFLEET_REDIS_URL: options.redisUrl,
    SHELLFLEET_NAMESPACE: options.namespace,
    SHELLFLEET_STATE_DIR: options.folder,
    SHELLFLEET_SLOTS: String(options.slots),
    SHELLFLEET_DEFAULT_IMAGE: options.image,
    SHELLFLEET_SEAL_KEY: sealKeys.join(','),
    SHELLFLEET_LOG_LEVEL: 'warn',
    ...(options.tools && { SHELLFLEET_TOOLS: options.tools.join(',') }),
  };
  const worker = fork(join(checkoutRoot, 'apps/worker/src/main.ts'), [], { env, stdio: ['ignore', 2, 2, 'ipc'] });
  const ended = once(worker, 'exit').then(() => {
    throw new Error('the worker ended before it was ready');
  });
  await Promise.race([once(worker, 'message'), ended]);
  ended.catch(() => {});
  return worker;
}
