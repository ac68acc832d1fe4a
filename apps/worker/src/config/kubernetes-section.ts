import { imageNameSchema } from '@shellfleet/protocol';
import { z } from 'zod';

// `kubernetes:`, where the worker makes the Pods of sessions under the policy of that name, and what they have.

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Properties that a Pod may lack although its session has or asks for them. Everything else is refused. */
const UNENFORCED = ['network', 'pids', 'memory', 'seccomp', 'noNewPrivs', 'userNamespaces', 'exec'] as const;

const nameSchema = z
  .string('must be a string')
  .regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be a name of Kubernetes');
const listOf = <T extends z.ZodType>(one: T, what: string) => z.array(one, `must be a list of ${what}`).default([]);
const bytes = z.int('must be a whole number of bytes').min(2 ** 20, 'must be at least 1048576 bytes (1 MiB)');
const portSchema = z.int('must be a port').min(1, 'must be a port').max(65_535, 'must be a port');
const pathSchema = z.string('must be a path').startsWith('/', 'must be an absolute path');

const apiSchema = z.strictObject(
  {
    server: z
      .url({ protocol: /^https$/, error: 'must be an https:// URL' })
      .optional()
      .describe('Address of the API server; default: that of the cluster in which the worker is a Pod'),
    caFile: pathSchema.optional().describe("A file with the certificates that sign the server's"),
    tokenFile: pathSchema.optional().describe("A file with the worker's token, which is read again when it changes"),
  },
  'must have only these fields: server, caFile, tokenFile',
);

const tolerationSchema = z.strictObject(
  {
    key: z.string('must be a string').optional(),
    operator: z.enum(['Exists', 'Equal'], 'must be Exists or Equal').optional(),
    value: z.string('must be a string').optional(),
    effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'], 'must be an effect of a taint').optional(),
    tolerationSeconds: z.int('must be a whole number').optional(),
  },
  'must have only these fields: key, operator, value, effect, tolerationSeconds',
);

const keeperSchema = z.strictObject(
  {
    image: imageNameSchema.describe('Image with the keeper; name it by its digest'),
    volume: z
      .enum(['init', 'image'], 'must be init or image')
      .default('init')
      .describe('Whether an init container copies the keeper into the Pod, or the image is mounted as a volume'),
  },
  'must have only these fields: image, volume',
);

const workspaceSchema = z.strictObject(
  {
    type: z
      .enum(['emptyDir', 'persistentVolumeClaim', 'ephemeral'], 'must be emptyDir, persistentVolumeClaim or ephemeral')
      .default('emptyDir')
      .describe('What /workspace is'),
    sizeBytes: bytes.default(10 * 2 ** 30).describe('Its size; default: 10 GiB'),
    storageClass: nameSchema.optional().describe('Storage class of a claim; default: that of the cluster'),
  },
  'must have only these fields: type, sizeBytes, storageClass',
);

const egressSchema = z.strictObject(
  {
    host: z.string('must be a string').min(1, 'must not be empty').describe('Name or address of the proxy'),
    port: portSchema.default(3128),
  },
  'must have only these fields: host, port',
);

export const kubernetesSchema = z.strictObject(
  {
    namespace: nameSchema.describe('Namespace of the Pods of sessions'),
    api: apiSchema.prefault({}).describe('The API server and how the worker proves itself'),
    port: portSchema.default(7_443).describe('Port on which keepers listen'),
    keeper: keeperSchema.describe('Where the keeper comes from'),
    pullPolicy: z
      .enum(['Always', 'IfNotPresent', 'Never'], 'must be Always, IfNotPresent or Never')
      .default('IfNotPresent')
      .describe('When nodes pull images'),
    pullSecrets: listOf(nameSchema, 'names').describe('Secrets of the namespace with logins for registries'),
    serviceAccount: nameSchema.optional().describe('Service account of the Pods, which get no token of it'),
    lease: nameSchema
      .optional()
      .describe('Lease whose deletion ends all Pods of the fleet; default: one that workers make'),
    nodeSelector: z
      .record(z.string(), z.string('must be a string'), 'must be an object of labels')
      .default({})
      .describe('Labels of the nodes for sessions'),
    tolerations: listOf(tolerationSchema, 'tolerations').describe('Taints that Pods tolerate'),
    priorityClass: nameSchema.optional().describe('Priority class of the Pods'),
    runtimeClasses: listOf(nameSchema, 'names').describe('RuntimeClasses that a session may ask for'),
    resources: listOf(
      z.string('must be a string').regex(/^[a-z0-9.-]+\/[\w.-]+$/, "must be a name such as 'nvidia.com/gpu'"),
      'names',
    ).describe('Resources that `limits.resources` of a session may ask for'),
    userNamespaces: z
      .boolean('must be true or false')
      .default(false)
      .describe('Whether Pods have a user namespace of their own'),
    workspace: workspaceSchema.prefault({}).describe('The workspace of each session'),
    ephemeralStorageBytes: bytes
      .default(10 * 2 ** 30)
      .describe('Local disk of a session that names no `diskBytes`; default: 10 GiB'),
    podPidsLimit: z
      .int('must be a whole number')
      .min(1, 'must be positive')
      .optional()
      .describe('`podPidsLimit` of your kubelets; default: unknown, so a session must not ask for `pids`'),
    egress: egressSchema.optional().describe('The egress proxy, which the network `limited` needs'),
    unenforced: listOf(z.enum(UNENFORCED, `must be one of ${UNENFORCED.join(', ')}`), 'properties').describe(
      'What a session may lack although it has or asks for it',
    ),
    probes: listOf(
      z.string('must be a string').regex(/^(?:\[[0-9a-fA-F:.]+\]|[^\s:[\]]+):\d{1,5}$/, 'must be host:port'),
      'addresses',
    ).describe('What no session may reach, as host:port; the API server is always one'),
  },
  'must have only these fields: namespace, api, port, keeper, pullPolicy, pullSecrets, serviceAccount, lease, nodeSelector, tolerations, priorityClass, runtimeClasses, resources, userNamespaces, workspace, ephemeralStorageBytes, podPidsLimit, egress, unenforced, probes',
);
type KubernetesSection = z.output<typeof kubernetesSchema>;

/** The section, with the API server that it names or the one of the cluster in which the worker is a Pod. */
export type KubernetesSettings = Omit<KubernetesSection, 'api'> & {
  api: { server: string; caFile?: string | undefined; tokenFile?: string | undefined };
};

/** Returns undefined if the section names no API server, and the worker is in no cluster. */
export function toKubernetesSettings(
  section: KubernetesSection,
  env: NodeJS.ProcessEnv,
): KubernetesSettings | undefined {
  const { server, ...files } = section.api;
  if (server !== undefined) return { ...section, api: { server, ...files } };
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = env;
  if (host === undefined) return undefined;
  const address = host.includes(':') ? `[${host}]` : host;
  const { caFile = `${SERVICE_ACCOUNT}/ca.crt`, tokenFile = `${SERVICE_ACCOUNT}/token` } = files;
  return { ...section, api: { server: `https://${address}:${port}`, caFile, tokenFile } };
}
