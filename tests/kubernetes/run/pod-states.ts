import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { Kubectl } from '../stage/kubectl.ts';

const EVERY_MS = 10_000;

const stateSchema = z.object({
  name: z.string(),
  ready: z.boolean(),
  state: z.record(z.string(), z.object({ reason: z.string().default(''), message: z.string().default('') }).loose()),
});
const podStateSchema = z.object({
  metadata: z.object({ name: z.string() }),
  status: z.object({
    phase: z.string().default('Pending'),
    conditions: z
      .array(z.object({ type: z.string(), status: z.string(), message: z.string().default('') }))
      .default([]),
    containerStatuses: z.array(stateSchema).default([]),
  }),
});
type PodState = z.infer<typeof podStateSchema>;

/** Prints the states of the Pods of a namespace as they change, until `work` ends. Returns what `work` does. */
export async function whilePrintingPods<T>(kubectl: Kubectl, work: Promise<T>): Promise<T> {
  const ended = new AbortController();
  const printing = printPods(kubectl, ended.signal);
  try {
    return await work;
  } finally {
    ended.abort();
    await printing;
  }
}

async function printPods(kubectl: Kubectl, signal: AbortSignal): Promise<void> {
  let before = '';
  while (await delay(EVERY_MS, true, { signal }).catch(() => false)) {
    const pods = await kubectl.list(podStateSchema, 'pods').catch(() => []);
    const lines = pods.map(describePod).join('\n');
    if (lines !== before) console.log(lines);
    before = lines;
  }
}

/** Describes how far a Pod is, in the words of the scheduler and the kubelet. */
export function describePod({ metadata, status }: PodState): string {
  const unscheduled = status.conditions.find((one) => one.type === 'PodScheduled' && one.status === 'False');
  const containers = status.containerStatuses
    .filter(({ ready }) => !ready)
    .flatMap(({ name, state }) =>
      Object.entries(state).map(([kind, { reason, message }]) =>
        [`${name} ${kind === 'running' ? 'is not ready' : kind}`, reason, message].filter(Boolean).join(': '),
      ),
    );
  return `  ${[metadata.name, status.phase, unscheduled?.message, ...containers].filter(Boolean).join(', ')}`;
}
