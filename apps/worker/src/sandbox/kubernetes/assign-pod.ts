import type { SessionRef } from '../sandbox.ts';
import type { ApiClient } from './api/api-client.ts';
import { metAnotherWrite, toClusterError } from './cluster-errors.ts';
import { isOfSession, toAssignment } from './pod-names.ts';
import { type Pod, podSchema } from './pod-schema.ts';
import { readPodState } from './pod-state.ts';
import { PODS, type Pods } from './pods.ts';

// Gives a Pod of a pool to a session.
//
// POOL-POD-1. A Pod gets one session: the write of its labels is refused if the Pod has changed since it was read
//     without one.
// POOL-POD-2. A Pod that is being deleted or evicted, or whose node does not answer, gets none.

/** Attempts to write the labels. One fails if the kubelet has changed the Pod since it was read. */
const ATTEMPTS = 4;

export interface PooledPod {
  client: Pick<ApiClient, 'get' | 'patch'>;
  pods: Pick<Pods, 'get'>;
  name: string;
}

/** Writes the session into the labels and annotations of the Pod. Throws if the Pod cannot be given to the session. */
export async function assignPod({ client, pods, name }: PooledPod, session: SessionRef, now: number): Promise<void> {
  const read = () => client.get(PODS, name, podSchema);
  let pod = pods.get(name) ?? (await read().catch(refused));
  for (let attempts = 1; !isOfSession(pod, session); attempts += 1) {
    checkFree(pod);
    const { resourceVersion } = pod.metadata;
    const metadata = { resourceVersion, ...toAssignment(session, now) };
    try {
      pod = await client.patch(PODS, name, { metadata }, podSchema);
    } catch (error) {
      if (!metAnotherWrite(error) || attempts === ATTEMPTS) refused(error);
      pod = await read().catch(refused);
    }
  }
}

/** Throws unless the Pod waits for a session, and will run on (POOL-POD-2). */
function checkFree(pod: Pod): void {
  const { metadata, status } = pod;
  const has = (type: string, is: string) => status.conditions.some((one) => one.type === type && one.status === is);
  const isLeaving = metadata.deletionTimestamp !== undefined || has('DisruptionTarget', 'True');
  // The kubelet, and the cluster for one that is silent, says whether a Pod without probes is reachable.
  if (readPodState(pod).type !== 'running' || isLeaving || has('Ready', 'False'))
    throw new Error(`the Pod ${metadata.name} does not run, or is about to end`);
  if (metadata.labels['shellfleet.dev/session'] !== undefined)
    throw new Error(`the Pod ${metadata.name} has a session already`);
}

function refused(error: unknown): never {
  throw toClusterError(error, 'to give a Pod to a session');
}
