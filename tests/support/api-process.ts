import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import type { TestFleet } from './start-fleet.ts';

/** The HTTP API of a fleet, in a process of its own. */
export interface ApiProcess extends AsyncDisposable {
  readonly url: string;
  /** Program and arguments that start another one. */
  readonly command: readonly string[];
  /** Variables with which it is started, but for the port. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Starts the API of a fleet on a free port, and waits until it answers. */
export async function startApiProcess(stack: TestFleet): Promise<ApiProcess> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const { redisUrl, namespace, sealKey } = stack;
  const env = {
    ...{ PATH, NODE_COMPILE_CACHE, SHELLFLEET_LOG_LEVEL: 'error', SHELLFLEET_API_RATE_LIMIT: '100000' },
    ...{ SHELLFLEET_REDIS_URL: redisUrl, SHELLFLEET_NAMESPACE: namespace, SHELLFLEET_SEAL_KEY: sealKey },
  };
  const main = join(checkoutRoot, 'apps/api/src/main.ts');
  const args = ['--conditions=@shellfleet/source', '--no-warnings', main];
  const child = spawn(process.execPath, args, {
    env: { ...env, SHELLFLEET_API_PORT: '0' },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  const failed = ended.then(([code]) => {
    throw new Error(`The API ended with ${code} before it was ready.`);
  });
  failed.catch(() => {});
  const [{ url }] = (await Promise.race([once(child, 'message'), failed])) as [{ url: string }];
  return {
    ...{ url, env, command: [process.execPath, ...args] },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
