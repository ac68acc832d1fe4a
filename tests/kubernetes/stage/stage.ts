import type { Fleet, SessionSpec } from '@shellfleet/client';
import type { Kubectl } from './kubectl.ts';

/** A fleet whose sessions are Pods: on a real cluster, or on the API server and the kubelet of the tests. */
export interface KubernetesStage extends AsyncDisposable {
  readonly fleet: Fleet;
  readonly kubectl: Kubectl;
  /** Spec of every session of the tests. */
  readonly spec: SessionSpec;
  /** What this cluster does not enforce, by the names of `kubernetes.unenforced`, with the words of the refusal. */
  readonly impossible: Readonly<Record<string, string>>;
  /** Allows this many Pods in the namespace beside what is there for the workers. Undefined: any number. */
  setPodQuota(pods: number | undefined): Promise<void>;
  /** Replaces the workers one after another, each by a SIGTERM, and resolves when the last is replaced. */
  rollOut(): Promise<void>;
  /** Ends a worker by force. On a cluster that is a deletion without grace, which leaves it a second or two. */
  killWorker(hostId: string): Promise<void>;
}
