import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keeperPath } from '@shellfleet/keeper';
import { checkoutRoot, ensureKeeperImage, findDocker } from '@shellfleet/setup';
import { inject } from 'vitest';
import { chartTools } from '../../../scripts/testing/chart-tools.ts';
import { startCluster } from '../../support/kubernetes/start-cluster.ts';
import { WORKER_RULES } from '../../support/kubernetes/worker-role.ts';
import { startFleet } from '../../support/start-fleet.ts';
import { Kubectl } from './kubectl.ts';
import type { KubernetesStage } from './stage.ts';

const EVERYTHING = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
const QUOTA = 'test-quota';
const MANY = 10_000;

/** Opens a stage on the API server and the kubelet of the tests, with two workers on this machine. */
export async function openTestStage(): Promise<KubernetesStage> {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(await startCluster({ nodes: 1 }));
  const worker = await cluster.tokenFor(WORKER_RULES);
  const { caFile, namespace, server } = cluster;
  const section = {
    ...{ namespace, keeper: { image: await keeperImage() }, pullPolicy: 'Never' },
    api: { server: server.url, caFile, tokenFile: worker.tokenFile },
    workspace: { sizeBytes: 2 ** 30 },
    ephemeralStorageBytes: 2 ** 30,
  };
  const config = join(caFile, '../workers.json');
  await writeFile(config, JSON.stringify({ kubernetes: section }));
  const env = { SHELLFLEET_POLICIES: 'kubernetes', SHELLFLEET_CONFIG: config };
  const fleet = stack.use(await startFleet({ workers: 2, slots: 50, env }));
  const { kubectl: program } = await chartTools();
  const admin = await cluster.tokenFor(EVERYTHING, EVERYTHING);
  const kubectl = new Kubectl(program, await admin.kubeconfig(), namespace);
  const owned = stack.move();
  return {
    ...{
      fleet: fleet.fleet,
      kubectl,
      impossible: {},
      spec: { policy: 'kubernetes', limits: { memoryBytes: 256 * 2 ** 20 } },
    },
    async setPodQuota(pods) {
      server.setQuota(namespace, QUOTA, { pods: String(pods ?? MANY) });
    },
    async rollOut() {
      for (const one of fleet.workers) {
        await one.stop('SIGTERM');
        await one.start();
      }
    },
    async killWorker(hostId) {
      await fleet.workers.find((one) => one.hostId === hostId)?.kill();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function keeperImage(): Promise<string> {
  const engine = await findDocker({ DOCKER_HOST: inject('dockerHost') });
  if (engine === undefined) throw new Error('the engine of the tests is gone');
  const deps = { endpoint: engine.endpoint, env: process.env, root: checkoutRoot, report: () => {} };
  return ensureKeeperImage(deps, await keeperPath(), process.arch === 'arm64' ? 'arm64' : 'x64');
}
