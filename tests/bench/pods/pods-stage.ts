import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from '@shellfleet/client';
import { createSealKey } from '@shellfleet/sealing';
import { ensureRedis } from '@shellfleet/setup';
import { makeCertificates } from '../../support/kubernetes/api-server/certificates.ts';
import { ApiServer } from '../../support/kubernetes/api-server/server.ts';
import { WORKER_RULES } from '../../support/kubernetes/worker-role.ts';
import { startWorker } from '../rows/worker-process.ts';

export interface PodsStageOptions {
  /** Address of the API server. */
  host: string;
  keeperImage: string;
  sessionImage: string;
  slots: number;
  /** What the Pods lack. */
  unenforced: string[];
  pools?: { policy: 'kubernetes'; min: number; max: number }[];
}

/** A fleet of its own whose workers make Pods on an API server of the tests, with a Redis of its own. */
export interface PodsStage extends AsyncDisposable {
  readonly server: ApiServer;
  readonly fleet: Fleet;
  startWorker(): Promise<ChildProcess>;
}

const NAMESPACE = 'sessions';

export async function openPodsStage(options: PodsStageOptions): Promise<PodsStage> {
  await using stack = new AsyncDisposableStack();
  const { host, keeperImage, sessionImage, slots, unenforced, pools = [] } = options;
  const report = (line: string) => console.error(line);
  const directory = await mkdtemp(join(tmpdir(), 'sf-stage-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const redis = stack.use(await ensureRedis({ env: {}, directory, persistent: false, report }));
  const certificates = await makeCertificates(directory, [host]);
  const server = await ApiServer.start({ certificates, host });
  stack.defer(() => server.stop());
  server.addNamespace(NAMESPACE);
  const token = server.access.add({ name: 'worker', rules: { [NAMESPACE]: WORKER_RULES, '*': [] } });
  const [tokenFile, configPath] = [join(directory, 'token'), join(directory, 'config.yaml')];
  await writeFile(tokenFile, token);
  const kubernetes = {
    ...{ namespace: NAMESPACE, keeper: { image: keeperImage }, pullPolicy: 'Never', unenforced },
    ...{ workspace: { sizeBytes: 2 ** 30 }, ephemeralStorageBytes: 2 ** 30 },
    api: { server: server.url, caFile: certificates.caFile, tokenFile },
  };
  await writeFile(configPath, JSON.stringify({ kubernetes, pools }));
  const [namespace, sealKey] = [`pods-${randomUUID().slice(0, 8)}`, createSealKey()];
  const workers: ChildProcess[] = [];
  stack.defer(async () => {
    for (const worker of workers) {
      if (worker.exitCode !== null || worker.signalCode !== null) continue;
      worker.kill('SIGKILL');
      await once(worker, 'exit');
    }
  });
  const fleet = await Fleet.connect({ redisUrl: redis.url, namespace, sealKeys: [sealKey] });
  stack.defer(() => fleet.close());
  const settings = { redisUrl: redis.url, namespace, slots, image: sessionImage, configPath };
  const owned = stack.move();
  return {
    server,
    fleet,
    async startWorker() {
      const state = join(directory, `worker-${workers.length}`);
      const worker = await startWorker({ ...settings, directory: state, policies: 'kubernetes' }, [sealKey]);
      workers.push(worker);
      return worker;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
