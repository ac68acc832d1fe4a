import { openClusterStage, readInstallation } from './cluster-stage.ts';
import type { KubernetesStage } from './stage.ts';

/** Opens the stage of the cluster that `npm run test:kubernetes` prepared, else one of the tests. */
export async function openStage(): Promise<KubernetesStage> {
  const path = process.env.SHELLFLEET_KUBERNETES_INSTALLATION;
  if (path) return openClusterStage(await readInstallation(path));
  // The engine of a test run is no part of a run on a cluster.
  const { openTestStage } = await import('./test-stage.ts');
  return openTestStage();
}
