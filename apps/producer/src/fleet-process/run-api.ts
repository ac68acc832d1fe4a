import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { Fleet, type FleetFile, readFleetFile, writeFleetFile } from '@shellfleet/client';
import { DEFAULTS } from '@shellfleet/protocol';
import { makeStateDirectory } from '@shellfleet/setup';
import { apiKeyPath, ensureApiKey } from './api-key.ts';
import { apiProgram } from './api-program.ts';
import { isApiRunning, readFleetRecord } from './fleet-record.ts';
import { apiReadySchema } from './supervise-api.ts';

/**
 * Serves the HTTP API in the foreground, for the fleet of the environment or the state directory. When it is ready,
 * makes a key for this user if there is none. Returns its exit code.
 */
export async function runApiProcess(env: NodeJS.ProcessEnv, report: (line: string) => void): Promise<number> {
  const child = spawn(process.execPath, apiProgram(), { env, stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  // A terminal sends Ctrl-C to this process and to the API, so this process ignores SIGINT. It forwards other signals.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  child.once('message', (message) => {
    const { url } = apiReadySchema.parse(message);
    child.disconnect();
    describeAccess(url, env).then(
      (access) => report(`The HTTP API is at ${url}. ${access}`),
      (error: Error) => report(`The HTTP API is at ${url}. This user has no key for it: ${error.message}`),
    );
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

/**
 * Makes sure that the connection file has the address and a key, unless it names another fleet, or the API of `up`.
 * Returns where the key is.
 */
async function describeAccess(url: string, env: NodeJS.ProcessEnv): Promise<string> {
  const named = toFleet(env);
  const file = (await readFleetFile(env)) ?? named;
  const isOther = named !== undefined && (file?.redisUrl !== named.redisUrl || file.namespace !== named.namespace);
  if (file === undefined || isOther) return '`shellfleet keys create` makes keys for it.';
  const directory = await makeStateDirectory(env);
  const { redisUrl, namespace, sealKeys } = file;
  await using fleet = await Fleet.connect({ redisUrl, namespace, sealKeys });
  const key = await ensureApiKey(fleet, directory);
  const record = await readFleetRecord(env);
  if (record === undefined || !isApiRunning(record)) await writeFleetFile({ ...file, api: { url, key } }, env);
  return `The key of this user is in ${apiKeyPath(directory)}.`;
}

/** Returns the fleet that the environment names. */
function toFleet(env: NodeJS.ProcessEnv): FleetFile | undefined {
  const { SHELLFLEET_REDIS_URL: redisUrl, SHELLFLEET_NAMESPACE, SHELLFLEET_SEAL_KEY = '' } = env;
  if (!redisUrl) return undefined;
  const namespace = SHELLFLEET_NAMESPACE || DEFAULTS.connection.namespace;
  return { version: 1, redisUrl, namespace, sealKeys: SHELLFLEET_SEAL_KEY.split(',').map((key) => key.trim()) };
}
