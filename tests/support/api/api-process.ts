import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import type { TestFleet } from '../start-fleet.ts';

/** A server for HTTP in a process of its own. */
export interface ApiProcess extends AsyncDisposable {
  readonly pid: number;
  readonly url: string;
  /** Everything that it has printed so far. */
  readonly output: string;
  /** Sends a signal, waits until the process has ended, and returns its exit code. */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts a server on a free port, with the settings of its users. */
export async function startApiProcess(
  { redisUrl, namespace, sealKey }: Pick<TestFleet, 'redisUrl' | 'namespace' | 'sealKey'>,
  env: Record<string, string> = {},
): Promise<ApiProcess> {
  const program = join(checkoutRoot, 'apps/api/src/main.ts');
  const child = spawn(process.execPath, ['--conditions=@shellfleet/source', '--no-warnings', program], {
    env: {
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      SHELLFLEET_REDIS_URL: redisUrl,
      SHELLFLEET_NAMESPACE: namespace,
      SHELLFLEET_SEAL_KEY: sealKey,
      SHELLFLEET_API_PORT: '0',
      SHELLFLEET_LOG_LEVEL: 'debug',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const pieces: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece: Buffer) => pieces.push(piece));
  const output = () => Buffer.concat(pieces).toString();
  const ended = once(child, 'exit');
  const ready = once(child, 'message').then(([message]) => (message as { url: string }).url);
  const url = await Promise.race([
    ready,
    ended.then(() => {
      throw new Error(`The server ended before it was ready: ${output()}`);
    }),
  ]);
  return {
    url,
    pid: child.pid as number,
    get output() {
      return output();
    },
    async stop(signal) {
      child.kill(signal);
      const [exitCode] = (await ended) as [number | null];
      return exitCode;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
