import { chartTools } from '../../../scripts/testing/chart-tools.ts';
import { startPodFleet } from '../../support/kubernetes/pod-fleet.ts';
import { Kubectl } from './kubectl.ts';
import type { KubernetesStage } from './stage.ts';

const EVERYTHING = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
const QUOTA = 'test-quota';
const MANY = 10_000;

/** Opens a stage on the API server and the kubelet of the tests, with two workers on this machine. */
export async function openTestStage(): Promise<KubernetesStage> {
  await using stack = new AsyncDisposableStack();
  const section = { workspace: { sizeBytes: 2 ** 30 }, ephemeralStorageBytes: 2 ** 30 };
  const pods = await startPodFleet({ workers: 2, slots: 50, cluster: { nodes: 1 }, section });
  const { cluster, stack: fleet } = stack.use(pods);
  const { namespace, server } = cluster;
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
