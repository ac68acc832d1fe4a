import { type ApiBounds, ApiClient } from './api/api-client.ts';
import type { ApiSettings } from './api/credentials.ts';
import { toClusterError } from './cluster-errors.ts';
import { podSchema } from './pod-schema.ts';
import { readPodState } from './pod-state.ts';
import { PODS } from './pods.ts';

/** Returns what a worker with these settings sees in its cluster, as a sentence. Throws SANDBOX_UNAVAILABLE. */
export async function examineCluster(api: ApiSettings, namespace: string, times?: ApiBounds): Promise<string> {
  const client = new ApiClient(api, namespace, times);
  try {
    const { items } = await client.list(PODS, 'app.kubernetes.io/managed-by=shellfleet', podSchema);
    const running = items.filter((pod) => readPodState(pod).type === 'running').length;
    return `${api.server} answers; the namespace ${namespace} has ${running} running Pods of sessions`;
  } catch (error) {
    throw toClusterError(error, `to list the Pods of the namespace ${namespace}`);
  } finally {
    client.close();
  }
}
