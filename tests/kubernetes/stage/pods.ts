import { z } from 'zod';
import type { Kubectl } from './kubectl.ts';

/** What the tests read of a Pod. */
export const podSchema = z.object({
  metadata: z.object({
    name: z.string(),
    uid: z.string(),
    annotations: z.record(z.string(), z.string()).default({}),
    deletionTimestamp: z.string().optional(),
  }),
  spec: z.object({ nodeName: z.string().optional() }).loose(),
  status: z.object({ phase: z.string().default('Pending'), podIP: z.string().optional() }).loose(),
});
export type PodView = z.infer<typeof podSchema>;

/** Selects the Pods of sessions. Objects of the chart have another value. */
const OF_SESSIONS = '--selector=app.kubernetes.io/managed-by=shellfleet';
/** Annotation with tenant and name of a Pod's session. */
const OF_SESSION = 'shellfleet.dev/session-of';

export const listSessionPods = (kubectl: Kubectl): Promise<PodView[]> => kubectl.list(podSchema, 'pods', OF_SESSIONS);

/** Returns the Pod of a session, which has one. */
export async function podOf(kubectl: Kubectl, session: string): Promise<PodView> {
  const pods = (await listSessionPods(kubectl)).filter(
    ({ metadata }) => metadata.annotations[OF_SESSION]?.endsWith(`:${session}`) && !metadata.deletionTimestamp,
  );
  const [pod] = pods;
  if (pod === undefined || pods.length > 1) throw new Error(`${session} has ${pods.length} Pods instead of one`);
  return pod;
}

/** Tells whether a Pod counts for a quota of Pods, and will do so for longer than its grace. */
export const countsForQuota = ({ metadata, status }: PodView): boolean =>
  metadata.deletionTimestamp === undefined && !['Succeeded', 'Failed'].includes(status.phase);
