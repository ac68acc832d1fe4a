import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ConnectOptions, readFleetFile } from '@shellfleet/client';

const shellfleet = fileURLToPath(new URL('../../../node_modules/.bin/shellfleet', import.meta.url));
const run = promisify(execFile);
const slots = 4;

/** Starts a fleet for this run alone with `shellfleet up`, with its state in `directory`. */
export async function startOwnFleet(directory: string): Promise<AsyncDisposable & { connection: ConnectOptions }> {
  const env = privateEnvironment(directory);
  console.log(`Starting a private fleet with ${slots} slots`);
  await run(shellfleet, ['up', '--detach', '--slots', String(slots)], { env });
  const stop = async (): Promise<void> => {
    await run(shellfleet, ['down'], { env });
  };
  // The fleet is detached, so Ctrl-C in this program does not reach it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stop().finally(() => process.exit(130)));
  const file = await readFleetFile(env);
  if (file === undefined) {
    await stop();
    throw new Error(`shellfleet up left no connection file in ${directory}`);
  }
  const { redisUrl, namespace, sealKeys } = file;
  return { connection: { redisUrl, namespace, sealKeys }, [Symbol.asyncDispose]: stop };
}

/** Returns the environment of this process without variables that name another fleet. */
function privateEnvironment(directory: string): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('SHELLFLEET_') || name === 'SHELLFLEET_DEFAULT_IMAGE',
  );
  return { ...Object.fromEntries(own), SHELLFLEET_STATE_DIR: directory };
}
