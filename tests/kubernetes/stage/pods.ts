import { z } from 'zod';
import type { Kubectl } from './kubectl.ts';

/** What the tests read of a Pod. */
export const podSchema = z.object({
  metadata: z.object({ name: z.string(), uid: z.string(), labels: z.record(z.string(), z.string()).default({}) }),
  spec: z.object({ nodeName: z.string().optional() }).loose(),
  status: z.object({ phase: z.string().default('Pending') }).loose(),
});
export type PodView = z.infer<typeof podSchema>;

/** Selects the Pods of sessions. Objects of the chart have another value. */
const OF_SESSIONS = '--selector=app.kubernetes.io/managed-by=shellfleet';

export const listSessionPods = (kubectl: Kubectl): Promise<PodView[]> => kubectl.list(podSchema, 'pods', OF_SESSIONS);

/** Runs `open`, and returns the Pod that there is then and was not before. */
export async function podMadeBy(kubectl: Kubectl, open: () => Promise<unknown>): Promise<PodView> {
  const before = new Set((await listSessionPods(kubectl)).map(({ metadata }) => metadata.uid));
  await open();
  const made = (await listSessionPods(kubectl)).filter(({ metadata }) => !before.has(metadata.uid));
  const [pod] = made;
  if (pod === undefined || made.length > 1) throw new Error(`${made.length} Pods were made instead of one`);
  return pod;
}
