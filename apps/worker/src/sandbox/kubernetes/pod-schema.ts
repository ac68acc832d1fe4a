import { z } from 'zod';

// The fields of a Pod that are read here. The API server leaves out what has no value.

const statusText = { reason: z.string().default(''), message: z.string().default('') };

const containerStatusSchema = z.object({
  name: z.string(),
  state: z
    .object({
      waiting: z.object(statusText).optional(),
      running: z.object({ startedAt: z.string().nullish() }).optional(),
      terminated: z.object({ exitCode: z.number().int(), startedAt: z.string().nullish(), ...statusText }).optional(),
    })
    .default({}),
});

export const podSchema = z.object({
  metadata: z.object({
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
    creationTimestamp: z.string(),
    /** Time at which a deletion has ended the containers. */
    deletionTimestamp: z.string().optional(),
    deletionGracePeriodSeconds: z.number().optional(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.object({
    nodeName: z.string().optional(),
    containers: z.array(z.object({ name: z.string(), image: z.string() })),
    initContainers: z.array(z.object({ name: z.string(), image: z.string() })).default([]),
  }),
  status: z.object({
    phase: z.string().default('Pending'),
    podIP: z.string().optional(),
    ...statusText,
    conditions: z.array(z.object({ type: z.string(), status: z.string(), ...statusText })).default([]),
    initContainerStatuses: z.array(containerStatusSchema).default([]),
    containerStatuses: z.array(containerStatusSchema).default([]),
  }),
});

export type Pod = z.infer<typeof podSchema>;
export type ContainerStatus = z.infer<typeof containerStatusSchema>;
