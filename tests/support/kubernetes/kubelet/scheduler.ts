import { amountOf } from '../api-server/quantity.ts';
import { podRequests } from '../api-server/quota.ts';
import type { Store } from '../api-server/store.ts';
import type { Node } from './node.ts';
import { type Pod, updateStatus, withConditions } from './pod-status.ts';

/** Binds Pods to nodes, one after the other, and writes why it cannot in the words of the real scheduler. */
export class Scheduler {
  readonly #store: Store;
  readonly #nodes: () => readonly Node[];
  readonly #findClaims: (pod: Pod) => string | undefined;

  /** `findClaims` returns why the claims of a Pod keep it from every node. */
  constructor(store: Store, nodes: () => readonly Node[], findClaims: (pod: Pod) => string | undefined) {
    this.#store = store;
    this.#nodes = nodes;
    this.#findClaims = findClaims;
  }

  /** Tries all Pods that wait, the oldest first. */
  run(): void {
    const waiting = (this.#store.list('pods') as Pod[])
      .filter(({ metadata, spec }) => spec.nodeName === undefined && metadata.deletionTimestamp === undefined)
      .toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion));
    for (const pod of waiting) this.#schedule(pod);
  }

  #schedule(pod: Pod): void {
    const nodes = this.#nodes();
    const claims = this.#findClaims(pod);
    const reasons = nodes.map((node) => this.#refusals(pod, node));
    const free = claims === undefined ? nodes.find((_, index) => reasons[index]?.length === 0) : undefined;
    if (!free) {
      this.#refuse(pod, unschedulable(nodes.length, reasons, claims));
      return;
    }
    this.#store.update('pods', pod.metadata.namespace, pod.metadata.name, (current) => {
      const bound = current as Pod;
      const conditions = withConditions(bound.status.conditions, [{ type: 'PodScheduled', status: 'True' }]);
      return { ...bound, spec: { ...bound.spec, nodeName: free.name }, status: { ...bound.status, conditions } };
    });
  }

  #refuse(pod: Pod, message: string): void {
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message } as const;
    const isSame = pod.status.conditions?.some((known) => known.type === 'PodScheduled' && known.message === message);
    if (isSame) return;
    updateStatus(this.#store, pod, (status) => ({
      ...status,
      conditions: withConditions(status.conditions, [condition]),
    }));
  }

  #refusals(pod: Pod, node: Node): string[] {
    if (node.isCordoned) return ['node(s) were unschedulable'];
    const taint = node.taints.find((one) => !tolerates(pod, one));
    if (taint) return [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`];
    const selector = Object.entries(pod.spec.nodeSelector ?? {});
    if (selector.some(([key, value]) => node.labels[key] !== value))
      return ["node(s) didn't match Pod's node affinity/selector"];
    return this.#lacking(pod, node);
  }

  #lacking(pod: Pod, node: Node): string[] {
    const others = (this.#store.list('pods') as Pod[]).filter(
      ({ spec, status }) => spec.nodeName === node.name && !['Succeeded', 'Failed'].includes(status.phase),
    );
    const used = (name: string) => others.reduce((sum, { spec }) => sum + (podRequests(spec)[name]?.value ?? 0), 0);
    const lacking = Object.entries(podRequests(pod.spec))
      .filter(([name, { value }]) => value > 0 && used(name) + value > amountOf(node.capacity[name]))
      .map(([name]) => `Insufficient ${name}`);
    return others.length + 1 > amountOf(node.capacity.pods) ? ['Too many pods', ...lacking] : lacking;
  }
}

function tolerates({ spec }: Pod, taint: { key: string; value?: string; effect: string }): boolean {
  return (spec.tolerations ?? []).some(
    ({ key = '', operator = 'Equal', value = '', effect = '' }) =>
      (key === '' || key === taint.key) &&
      (effect === '' || effect === taint.effect) &&
      (operator === 'Exists' || value === (taint.value ?? '')),
  );
}

/** Writes the message of the condition: `0/3 nodes are available: 3 Insufficient cpu.`, and what preemption found. */
export function unschedulable(nodes: number, reasons: readonly string[][], claims: string | undefined): string {
  const available = `0/${nodes} nodes are available`;
  if (nodes === 0) return 'no nodes available to schedule pods';
  const counts = new Map<string, number>();
  for (const reason of reasons.flat()) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const listed = [...counts].map(([reason, count]) => `${count} ${reason}`).toSorted();
  const why = claims ?? listed.join(', ');
  const isHelpful = (all: readonly string[]) => all.every((one) => /^Insufficient|^Too many/.test(one));
  const helped = claims === undefined ? reasons.filter(isHelpful).length : 0;
  const victims = [
    ...(helped > 0 ? [`${helped} No preemption victims found for incoming pod`] : []),
    ...(nodes > helped ? [`${nodes - helped} Preemption is not helpful for scheduling`] : []),
  ];
  return `${available}: ${why}. preemption: ${available}: ${victims.join(', ')}.`;
}
