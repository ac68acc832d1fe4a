import type { z } from 'zod';
import { type Pod, podSchema } from '../src/sandbox/kubernetes/pod-schema.ts';

type Status = Partial<z.input<typeof podSchema>['status']>;

/** Returns a Pod on the node n1 as a worker reads it, with this status. */
export const podWith = (status: Status, metadata: Partial<Pod['metadata']> = {}): Pod =>
  podSchema.parse({
    metadata: {
      ...{ name: 'sf-0123456789ab', uid: 'u1', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
      ...metadata,
    },
    spec: {
      nodeName: 'n1',
      initContainers: [{ name: 'keeper', image: 'registry/keeper:1' }],
      containers: [{ name: 'shell', image: 'alpine:3' }],
    },
    status,
  });

const ended = (exitCode: number, reason = 'Completed', message = '') => ({
  terminated: { exitCode, reason, message, startedAt: '2026-01-01T00:00:01Z' },
});

/** Statuses of the containers, of which the keeper's has ended in order. */
export const containersWith = (shell: object, keeper: object = ended(0)) => ({
  initContainerStatuses: [{ name: 'keeper', state: keeper }],
  containerStatuses: [{ name: 'shell', state: shell }],
});

export const RUNNING = { phase: 'Running', podIP: '10.1.2.3', ...containersWith({ running: {} }) };
export { ended };
