import { z } from 'zod';
import { anything, claimTemplateSchema, metadataSchema, quantities } from './metadata-schema.ts';

// Every field of a Pod in core/v1 of Kubernetes 1.35, with the defaults that the API server writes. `anything` stands
// for parts that no Pod of Shellfleet has: what is inside them is neither checked nor obeyed.

const int = z.number().int();
const seLinuxOptions = z.strictObject({
  user: z.string().optional(),
  role: z.string().optional(),
  type: z.string().optional(),
  level: z.string().optional(),
});
const profile = z.strictObject({ type: z.string(), localhostProfile: z.string().optional() });
const windowsOptions = z.strictObject({
  gmsaCredentialSpecName: z.string().optional(),
  gmsaCredentialSpec: z.string().optional(),
  runAsUserName: z.string().optional(),
  hostProcess: z.boolean().optional(),
});

const containerSecurityContext = z.strictObject({
  capabilities: z
    .strictObject({ add: z.array(z.string()).optional(), drop: z.array(z.string()).optional() })
    .optional(),
  privileged: z.boolean().optional(),
  seLinuxOptions: seLinuxOptions.optional(),
  windowsOptions: windowsOptions.optional(),
  runAsUser: int.optional(),
  runAsGroup: int.optional(),
  runAsNonRoot: z.boolean().optional(),
  readOnlyRootFilesystem: z.boolean().optional(),
  allowPrivilegeEscalation: z.boolean().optional(),
  procMount: z.string().optional(),
  seccompProfile: profile.optional(),
  appArmorProfile: profile.optional(),
});

const envSource = z.strictObject({
  fieldRef: z.strictObject({ apiVersion: z.string().default('v1'), fieldPath: z.string() }).optional(),
  resourceFieldRef: anything.optional(),
  configMapKeyRef: anything.optional(),
  secretKeyRef: anything.optional(),
  fileKeyRef: anything.optional(),
});

const containerSchema = z
  .strictObject({
    name: z.string().default(''),
    image: z.string().optional(),
    command: z.array(z.string()).optional(),
    args: z.array(z.string()).optional(),
    workingDir: z.string().optional(),
    ports: z
      .array(
        z.strictObject({
          name: z.string().optional(),
          hostPort: int.optional(),
          containerPort: int,
          protocol: z.string().default('TCP'),
          hostIP: z.string().optional(),
        }),
      )
      .optional(),
    envFrom: z.array(anything).optional(),
    env: z
      .array(z.strictObject({ name: z.string(), value: z.string().optional(), valueFrom: envSource.optional() }))
      .optional(),
    resources: z
      .strictObject({
        limits: quantities.optional(),
        requests: quantities.optional(),
        claims: z.array(anything).optional(),
      })
      .default({}),
    resizePolicy: z.array(anything).optional(),
    restartPolicy: z.string().optional(),
    restartPolicyRules: z.array(anything).optional(),
    volumeMounts: z
      .array(
        z.strictObject({
          name: z.string(),
          readOnly: z.boolean().optional(),
          recursiveReadOnly: z.string().optional(),
          mountPath: z.string().default(''),
          subPath: z.string().optional(),
          mountPropagation: z.string().optional(),
          subPathExpr: z.string().optional(),
        }),
      )
      .optional(),
    volumeDevices: z.array(anything).optional(),
    livenessProbe: anything.optional(),
    readinessProbe: anything.optional(),
    startupProbe: anything.optional(),
    lifecycle: anything.optional(),
    terminationMessagePath: z.string().default('/dev/termination-log'),
    terminationMessagePolicy: z.string().default('File'),
    imagePullPolicy: z.string().optional(),
    securityContext: containerSecurityContext.optional(),
    stdin: z.boolean().optional(),
    stdinOnce: z.boolean().optional(),
    tty: z.boolean().optional(),
  })
  .transform((container) => ({
    ...container,
    imagePullPolicy: container.imagePullPolicy ?? (isLatest(container.image ?? '') ? 'Always' : 'IfNotPresent'),
    resources: { ...container.resources, ...withRequests(container.resources) },
  }));

/** Tells whether an image is named without a tag, or with the tag `latest`. */
function isLatest(image: string): boolean {
  if (image.includes('@')) return false;
  const tag = /:([^/:]+)$/.exec(image)?.[1];
  return tag === undefined || tag === 'latest';
}

/** Requests what is limited and not requested. */
function withRequests({
  limits,
  requests,
}: Partial<Record<'limits' | 'requests', Record<string, string> | undefined>>) {
  return limits === undefined ? {} : { requests: { ...limits, ...requests } };
}

const volumeSchema = z.strictObject({
  name: z.string().default(''),
  emptyDir: z
    .strictObject({
      medium: z.string().optional(),
      sizeLimit: z.union([z.string(), z.number()]).transform(String).optional(),
    })
    .optional(),
  persistentVolumeClaim: z.strictObject({ claimName: z.string(), readOnly: z.boolean().optional() }).optional(),
  ephemeral: z.strictObject({ volumeClaimTemplate: claimTemplateSchema }).optional(),
  image: z
    .strictObject({ reference: z.string().optional(), pullPolicy: z.string().default('IfNotPresent') })
    .optional(),
  hostPath: z.strictObject({ path: z.string(), type: z.string().default('') }).optional(),
  ...Object.fromEntries(
    `awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI fc flexVolume flocker
    gcePersistentDisk gitRepo glusterfs iscsi nfs photonPersistentDisk portworxVolume projected quobyte rbd scaleIO
    secret storageos vsphereVolume`
      .split(/\s+/)
      .map((source) => [source, anything.optional()]),
  ),
});

const podSecurityContext = z.strictObject({
  seLinuxOptions: seLinuxOptions.optional(),
  windowsOptions: windowsOptions.optional(),
  runAsUser: int.optional(),
  runAsGroup: int.optional(),
  runAsNonRoot: z.boolean().optional(),
  supplementalGroups: z.array(int).optional(),
  supplementalGroupsPolicy: z.string().optional(),
  fsGroup: int.optional(),
  sysctls: z.array(z.strictObject({ name: z.string(), value: z.string() })).optional(),
  fsGroupChangePolicy: z.string().optional(),
  seccompProfile: profile.optional(),
  appArmorProfile: profile.optional(),
  seLinuxChangePolicy: z.string().optional(),
});

const tolerationSchema = z.strictObject({
  key: z.string().optional(),
  operator: z.string().optional(),
  value: z.string().optional(),
  effect: z.string().optional(),
  tolerationSeconds: int.optional(),
});

const podSpecSchema = z.strictObject({
  volumes: z.array(volumeSchema).optional(),
  initContainers: z.array(containerSchema).optional(),
  containers: z.array(containerSchema).default([]),
  ephemeralContainers: z.array(anything).optional(),
  restartPolicy: z.string().default('Always'),
  terminationGracePeriodSeconds: int.default(30),
  activeDeadlineSeconds: int.optional(),
  dnsPolicy: z.string().default('ClusterFirst'),
  nodeSelector: z.record(z.string(), z.string()).optional(),
  serviceAccountName: z.string().optional(),
  serviceAccount: z.string().optional(),
  automountServiceAccountToken: z.boolean().optional(),
  nodeName: z.string().optional(),
  hostNetwork: z.boolean().optional(),
  hostPID: z.boolean().optional(),
  hostIPC: z.boolean().optional(),
  shareProcessNamespace: z.boolean().optional(),
  securityContext: podSecurityContext.default({}),
  imagePullSecrets: z.array(z.strictObject({ name: z.string().optional() })).optional(),
  hostname: z.string().optional(),
  subdomain: z.string().optional(),
  affinity: anything.optional(),
  schedulerName: z.string().default('default-scheduler'),
  tolerations: z.array(tolerationSchema).optional(),
  hostAliases: z.array(z.strictObject({ ip: z.string(), hostnames: z.array(z.string()).optional() })).optional(),
  priorityClassName: z.string().optional(),
  priority: int.optional(),
  dnsConfig: z
    .strictObject({
      nameservers: z.array(z.string()).optional(),
      searches: z.array(z.string()).optional(),
      options: z.array(z.strictObject({ name: z.string(), value: z.string().optional() })).optional(),
    })
    .optional(),
  readinessGates: z.array(anything).optional(),
  runtimeClassName: z.string().optional(),
  enableServiceLinks: z.boolean().default(true),
  preemptionPolicy: z.string().optional(),
  overhead: quantities.optional(),
  topologySpreadConstraints: z.array(anything).optional(),
  setHostnameAsFQDN: z.boolean().optional(),
  os: z.strictObject({ name: z.string() }).optional(),
  hostUsers: z.boolean().optional(),
  schedulingGates: z.array(anything).optional(),
  resourceClaims: z.array(anything).optional(),
  resources: anything.optional(),
  hostnameOverride: z.string().optional(),
  workloadRef: anything.optional(),
});

export const podSchema = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Pod'),
  metadata: metadataSchema,
  spec: podSpecSchema,
  status: anything.optional(),
});

export type PodSpec = z.output<typeof podSpecSchema>;
export type Container = z.output<typeof containerSchema>;
export type Volume = z.output<typeof volumeSchema>;
export type Toleration = z.output<typeof tolerationSchema>;
