import type { PodSpec } from '../api-server/pod-schema.ts';
import { type KubeObject, type Metadata, type Store, timestamp } from '../api-server/store.ts';

export interface Pod extends KubeObject {
  metadata: Metadata & { namespace: string };
  spec: PodSpec;
  status: PodStatus;
}

export interface Condition {
  type: string;
  status: 'True' | 'False';
  reason?: string;
  message?: string;
  lastProbeTime?: null;
  lastTransitionTime?: string;
}

export interface Terminated {
  exitCode: number;
  reason: string;
  message?: string;
  startedAt: string;
  finishedAt: string;
  containerID?: string;
}

export type ContainerState =
  | { waiting: { reason: string; message?: string } }
  | { running: { startedAt: string } }
  | { terminated: Terminated };

export interface ContainerStatus {
  name: string;
  state: ContainerState;
  lastState: object;
  ready: boolean;
  started: boolean;
  restartCount: number;
  image: string;
  imageID: string;
  containerID?: string;
}

export interface PodStatus {
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed';
  qosClass?: string;
  reason?: string;
  message?: string;
  hostIP?: string;
  podIP?: string;
  podIPs?: { ip: string }[];
  startTime?: string;
  conditions?: Condition[];
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
}

/** Reads a Pod of the store. */
export function podOf(store: Store, namespace: string, name: string): Pod | undefined {
  return store.get('pods', namespace, name) as Pod | undefined;
}

/** Changes the status of a Pod, unless another Pod has its name by now. */
export function updateStatus(store: Store, { metadata }: Pod, change: (status: PodStatus) => PodStatus): void {
  store.update('pods', metadata.namespace, metadata.name, (current) =>
    current.metadata.uid === metadata.uid ? { ...current, status: change(current.status as PodStatus) } : current,
  );
}

/** Returns the conditions with these in place of those of the same types. A time changes with the status alone. */
export function withConditions(before: readonly Condition[] = [], changed: readonly Condition[]): Condition[] {
  const now = timestamp();
  const next = new Map(before.map((condition) => [condition.type, condition]));
  for (const condition of changed) {
    const former = next.get(condition.type);
    const isSame = former !== undefined && former.status === condition.status;
    const lastTransitionTime = isSame ? (former.lastTransitionTime ?? now) : now;
    next.set(condition.type, { ...condition, lastProbeTime: null, lastTransitionTime });
  }
  return [...next.values()];
}

/** Why a Pod is about to end, as controllers write it into its conditions. */
export function disruption(reason: string, message: string): Condition {
  return { type: 'DisruptionTarget', status: 'True', reason, message };
}

/** Conditions that a kubelet derives from the states of the containers. */
export function derivedConditions(spec: PodSpec, status: PodStatus, hasNetwork: boolean): Condition[] {
  const isDone = (state: ContainerState | undefined) => state !== undefined && 'terminated' in state;
  const incomplete = (status.initContainerStatuses ?? []).filter(
    ({ state }) => !('terminated' in state) || state.terminated.exitCode !== 0,
  );
  const unready = (status.containerStatuses ?? []).filter(({ ready }) => !ready);
  const ready = readiness(status, unready, spec.containers.length);
  const initialized: Condition =
    incomplete.length === 0
      ? { type: 'Initialized', status: 'True', ...(status.phase === 'Succeeded' && { reason: 'PodCompleted' }) }
      : {
          type: 'Initialized',
          status: 'False',
          reason: 'ContainersNotInitialized',
          message: `containers with incomplete status: [${incomplete.map(({ name }) => name).join(' ')}]`,
        };
  const hasEnded = (status.containerStatuses ?? []).every(({ state }) => isDone(state)) && status.phase !== 'Pending';
  return [
    { type: 'PodReadyToStartContainers', status: hasNetwork && !hasEnded ? 'True' : 'False' },
    initialized,
    { type: 'Ready', ...ready },
    { type: 'ContainersReady', ...ready },
  ];
}

function readiness({ phase }: PodStatus, unready: readonly ContainerStatus[], all: number): Omit<Condition, 'type'> {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  if (unready.length === 0 && all > 0) return { status: 'True' };
  const message = `containers with unready status: [${unready.map(({ name }) => name).join(' ')}]`;
  return { status: 'False', reason: 'ContainersNotReady', message };
}
