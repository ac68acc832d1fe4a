import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { Session as Inspector, type Profiler } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Fleet } from '@shellfleet/client';
import { checkoutRoot, ensureRedis } from '@shellfleet/setup';
import { startWorker } from '@shellfleet/worker/start-worker';

// `npm run path`: lists the TypeScript files in which a function is called for one `echo hi`, in a session that has run
// commands before. Client and worker are in this process, with a real Redis and keeper. A file is
// listed only if each of several commands calls it, so that timers do not count.

const COMMANDS = 8;
/** Time that the worker gets after the Result, until it waits again. */
const REST_MS = 30;

const directory = await mkdtemp(join(tmpdir(), 'shellfleet-path-'));
const redis = await ensureRedis({ env: {}, directory, persistent: false, report: console.error });
const [redisUrl, namespace, sealKey] = [redis.url, 'path', randomBytes(32).toString('base64')];
Object.assign(process.env, {
  ...{ SHELLFLEET_REDIS_URL: redisUrl, SHELLFLEET_NAMESPACE: namespace, SHELLFLEET_SEAL_KEY: sealKey },
  ...{ SHELLFLEET_STATE_DIR: join(directory, 'state'), SHELLFLEET_LOG_LEVEL: 'error', SHELLFLEET_POLICIES: 'host' },
  ...{ SHELLFLEET_MIN_FREE_DISK: '0', SHELLFLEET_MIN_FREE_MEMORY: '0' },
  ...(process.getuid?.() === 0 ? { SHELLFLEET_HOST_USER: '4799' } : { SHELLFLEET_HOST_SHARED_UID: '1' }),
});
await startWorker();
const fleet = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey] });
const session = await fleet.session('s', { policy: 'host' });
const inspector = new Inspector();
inspector.connect();
await inspector.post('Profiler.enable');
await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const calls = new Map<string, number>();
for (let command = -1; command < COMMANDS; command++) {
  await delay(10 * REST_MS);
  await inspector.post('Profiler.takePreciseCoverage');
  await session.run('echo hi');
  await delay(REST_MS);
  const { result } = await inspector.post('Profiler.takePreciseCoverage');
  // The first command warms up.
  if (command >= 0) for (const path of new Set(result.filter(isCalled).map(toPath))) count(path);
}
const files = [...calls].filter(([, times]) => times === COMMANDS).map(([path]) => path);
console.log(`${files.sort().join('\n')}\n${files.length} files`);
await session.close();
await fleet.close();
await redis.close();
await rm(directory, { recursive: true, force: true });
process.exit();

function isCalled({ url, functions }: Profiler.ScriptCoverage): boolean {
  const isOurs = url.startsWith('file:') && !/^(?:\.\.|tests|node_modules)\b/.test(toPath({ url }));
  return (
    isOurs && functions.some(({ ranges: [range] }) => range !== undefined && range.startOffset > 0 && range.count > 0)
  );
}

function toPath({ url }: Pick<Profiler.ScriptCoverage, 'url'>): string {
  return relative(checkoutRoot, fileURLToPath(url));
}

function count(path: string): void {
  calls.set(path, (calls.get(path) ?? 0) + 1);
}
