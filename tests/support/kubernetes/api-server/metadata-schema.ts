import { z } from 'zod';

const strings = z.record(z.string(), z.string());
/** Part of an object that the tests do not look into. */
export const anything = z.record(z.string(), z.unknown());

export const metadataSchema = z.strictObject({
  name: z.string().optional(),
  generateName: z.string().optional(),
  namespace: z.string().optional(),
  labels: strings.optional(),
  annotations: strings.optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z
    .array(
      z.strictObject({
        apiVersion: z.string(),
        kind: z.string(),
        name: z.string(),
        uid: z.string(),
        controller: z.boolean().optional(),
        blockOwnerDeletion: z.boolean().optional(),
      }),
    )
    .optional(),
  // The server sets these and ignores what a request writes.
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.number().optional(),
  creationTimestamp: z.string().nullish(),
  deletionTimestamp: z.string().nullish(),
  deletionGracePeriodSeconds: z.number().nullish(),
  managedFields: z.array(anything).optional(),
  selfLink: z.string().optional(),
});

export const quantities = z.record(z.string(), z.union([z.string(), z.number()]).transform(String));

const claimSpecSchema = z.strictObject({
  accessModes: z.array(z.string()).optional(),
  resources: z.strictObject({ requests: quantities.optional(), limits: quantities.optional() }).optional(),
  storageClassName: z.string().optional(),
  volumeMode: z.string().default('Filesystem'),
  volumeName: z.string().optional(),
  selector: anything.optional(),
  dataSource: anything.optional(),
  dataSourceRef: anything.optional(),
  volumeAttributesClassName: z.string().optional(),
});

export const claimTemplateSchema = z.strictObject({ metadata: metadataSchema.optional(), spec: claimSpecSchema });

export const claimSchema = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('PersistentVolumeClaim'),
  metadata: metadataSchema,
  spec: claimSpecSchema,
  status: anything.optional(),
});

export const leaseSchema = z.strictObject({
  apiVersion: z.literal('coordination.k8s.io/v1'),
  kind: z.literal('Lease'),
  metadata: metadataSchema,
  spec: z
    .strictObject({
      holderIdentity: z.string().optional(),
      leaseDurationSeconds: z.number().int().optional(),
      acquireTime: z.string().optional(),
      renewTime: z.string().optional(),
      leaseTransitions: z.number().int().optional(),
      strategy: z.string().optional(),
      preferredHolder: z.string().optional(),
    })
    .default({}),
});
