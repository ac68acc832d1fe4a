import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from '@shellfleet/client';
import { createSealKey } from '@shellfleet/sealing';
import { ensureMachine, ensureRedis } from '@shellfleet/setup';
import { ApiCaller } from '../../support/api/api-caller.ts';
import { type ApiProcess, startApiProcess } from '../../support/api/api-process.ts';
import { startWorker } from '../rows/worker-process.ts';

/** A server for HTTP, a worker and a Redis, each in a process of its own. */
export interface ApiStage extends AsyncDisposable {
  readonly redisUrl: string;
  readonly fleet: Fleet;
  readonly api: ApiProcess;
  /** A caller with every scope that the bench needs. */
  readonly caller: ApiCaller;
}

export async function startApiStage(env: Record<string, string> = {}): Promise<ApiStage> {
  const cleanup = new AsyncDisposableStack();
  const report = (line: string) => console.error(line);
  const { engine, sessionImage: image } = await ensureMachine(process.env, report);
  const { dockerHost } = engine.endpoint;
  const directory = await mkdtemp(join(tmpdir(), 'sf-bench-api-'));
  cleanup.defer(() => rm(directory, { recursive: true, force: true }));
  const redis = cleanup.use(await ensureRedis({ env: {}, directory, persistent: false, report }));
  const [namespace, sealKey] = [`bench-${randomUUID().slice(0, 8)}`, createSealKey()];
  const settings = { redisUrl: redis.url, namespace, directory: join(directory, 'state'), image, dockerHost, slots: 4 };
  const worker = await startWorker(settings, [sealKey]);
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  cleanup.defer(async () => {
    worker.kill('SIGINT');
    await ended;
  });
  const fleet = await Fleet.connect({ redisUrl: redis.url, namespace, sealKeys: [sealKey] });
  cleanup.defer(() => fleet.close());
  const { key } = await fleet.keys.create({ name: 'bench', scopes: ['submit', 'read'] });
  const api = cleanup.use(
    await startApiProcess(
      { redisUrl: redis.url, namespace, sealKey },
      { SHELLFLEET_API_RATE_LIMIT: '100000', SHELLFLEET_LOG_LEVEL: 'info', ...env },
    ),
  );
  return {
    ...{ redisUrl: redis.url, fleet, api, caller: new ApiCaller(api.url, key) },
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  };
}
