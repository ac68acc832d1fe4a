import type { Store } from '../api-server/store.ts';

export interface Taint {
  key: string;
  value?: string;
  effect: 'NoSchedule' | 'NoExecute';
}

export interface NodeSettings {
  name: string;
  /** Amounts of resources, such as `cpu`, `memory`, `pods` and `nvidia.com/gpu`. */
  capacity?: Record<string, string>;
  labels?: Record<string, string>;
  taints?: Taint[];
  /** Bound on the processes of a Pod, as the setting of a kubelet. Undefined: none. */
  podPidsLimit?: number | undefined;
  /** Names of volumes of Pods in which nothing can be executed, as on a node that mounts its disk so. */
  noexecVolumes?: string[];
}

const CAPACITY = { cpu: '64', memory: '256Gi', 'ephemeral-storage': '100Gi', pods: '110' };

const UNREACHABLE = (effect: Taint['effect']): Taint => ({ key: 'node.kubernetes.io/unreachable', effect });

/** A machine of the cluster, of which the store has an object. All are this machine. */
export class Node {
  readonly settings: NodeSettings;
  readonly ip: string;
  readonly capacity: Record<string, string>;
  readonly labels: Record<string, string>;
  readonly #store: Store;
  #isCordoned = false;
  /** True from its loss: its kubelet runs no Pod any more. */
  isLost = false;
  /** Reason for which the kubelet rejects the next Pod. Undefined: it rejects none. */
  rejectsNextFor: string | undefined;

  constructor(settings: NodeSettings, index: number, store: Store) {
    this.settings = settings;
    this.ip = `10.0.0.${index + 1}`;
    this.capacity = { ...CAPACITY, ...settings.capacity };
    this.labels = { 'kubernetes.io/hostname': settings.name, 'kubernetes.io/os': 'linux', ...settings.labels };
    this.#store = store;
    const { capacity, labels } = this;
    store.create('nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: settings.name, labels },
      spec: { ...(settings.taints && { taints: settings.taints }) },
      status: {
        capacity,
        allocatable: capacity,
        addresses: [{ type: 'InternalIP', address: this.ip }],
        conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
        nodeInfo: { kubeletVersion: 'v1.33.0-shellfleet-tests', operatingSystem: 'linux', architecture: process.arch },
      },
    });
  }

  get name(): string {
    return this.settings.name;
  }

  get taints(): Taint[] {
    return [
      ...(this.settings.taints ?? []),
      ...(this.#isCordoned ? [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' as const }] : []),
      ...(this.isLost ? [UNREACHABLE('NoSchedule'), UNREACHABLE('NoExecute')] : []),
    ];
  }

  get isCordoned(): boolean {
    return this.#isCordoned;
  }

  /** Keeps new Pods from the node, or lets them on it again. */
  cordon(isCordoned = true): void {
    this.#isCordoned = isCordoned;
    this.#write({ ...(isCordoned && { unschedulable: true }), taints: this.taints }, 'True');
  }

  markLost(): void {
    this.isLost = true;
    this.#write({ taints: this.taints }, 'Unknown');
  }

  #write(spec: object, ready: string): void {
    this.#store.update('nodes', undefined, this.name, (node) => ({
      ...node,
      spec,
      status: { ...(node.status as object), conditions: [{ type: 'Ready', status: ready }] },
    }));
  }
}
