import { WORKSPACE_PATH } from './directories.ts';
import type { KubernetesPlan, Toleration } from './kubernetes.ts';
import { proxyVariables } from './proxy-variables.ts';

// Translates a plan into the manifest of a Pod. Everything that hardens a Pod is in this file. Pod Security
// `restricted` admits the result: the fields that it forbids (host namespaces, host paths, sysctls, …) are absent.

/** Names of the labels and annotations of a Pod begin with it. */
const PREFIX = 'shellfleet.dev/';
const MANAGED = { 'app.kubernetes.io/managed-by': 'shellfleet' } as const;

/** Name of the shell's container, and that of the init container that installs the keeper. */
export const SHELL_CONTAINER = 'shell';
export const KEEPER_CONTAINER = 'keeper';

/** Directory of the keeper's program, and its directory for scripts of commands and the FIFOs of their output. */
const KEEPER_DIRECTORY = '/sf';
const RUN_DIRECTORY = '/run/shellfleet';

const MIB = 1024 * 1024;
const KEEPER_BYTES = 16 * MIB;
const RUN_DIRECTORY_BYTES = 16 * MIB;
const TMP_BYTES = 64 * MIB;
/** Time that the kubelet gives the keeper to end the shell. */
const GRACE_SECONDS = 30;
/** Time after which a keeper ends that no worker talks to: its fleet is gone, or has lost the session. */
const UNCLAIMED_MS = 3_600_000;
/** Time in which the Pod of a node that stopped to answer is evicted. */
const LOST_NODE_SECONDS = 30;

/** Values of the labels by which Pods are found: short hashes. NetworkPolicies select by a further label, `network`. */
export interface PodLabels {
  fleet: string;
  /** Absent in a Pod that waits in a pool. */
  tenant?: string | undefined;
  session?: string | undefined;
  generation?: string | undefined;
  /** Id of the link key that the keeper trusts. */
  key: string;
  /** Template of a Pod that waits in a pool, or did. */
  pool?: string | undefined;
}

/** Name, labels, owner and keys of one Pod: everything in its manifest that its plan does not decide. */
export interface PodNames {
  /** Name of the Pod, and of its claim for a workspace if there is one: `sf-<sandbox id>`. */
  name: string;
  labels: PodLabels;
  /** KEEPER_PROTOCOL_VERSION of the keeper. */
  keeperProtocol: number;
  /** The Lease of the fleet. The cluster deletes its Pods when it is deleted. */
  owner: { name: string; uid: string };
  /** Public key of the fleet, which is no secret, and the secret of this Pod, both in hex. */
  linkKey: string;
  linkPsk: string;
  /** URL of the egress proxy with the session's token. Needed for the network `limited`. */
  proxy?: string | undefined;
}

interface Metadata {
  name: string;
  namespace: string;
  labels: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences: { apiVersion: string; kind: string; name: string; uid: string; controller: boolean }[];
}

interface VolumeMount {
  name: string;
  mountPath: string;
  readOnly?: boolean;
}

interface Container {
  name: string;
  image: string;
  imagePullPolicy: string;
  command: string[];
  env?: { name: string; value: string }[];
  workingDir?: string;
  ports?: { name: string; containerPort: number; protocol: 'TCP' }[];
  stdin: false;
  tty: false;
  terminationMessagePolicy: 'File';
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  securityContext: {
    privileged: false;
    allowPrivilegeEscalation: false;
    capabilities: { drop: ['ALL'] };
    readOnlyRootFilesystem: boolean;
  };
  volumeMounts: VolumeMount[];
}

interface ClaimSpec {
  accessModes: ['ReadWriteOnce'];
  storageClassName?: string;
  resources: { requests: { storage: string } };
}

type Volume = { name: string } & (
  | { emptyDir: { medium?: 'Memory'; sizeLimit: string } }
  | { persistentVolumeClaim: { claimName: string } }
  | { ephemeral: { volumeClaimTemplate: { spec: ClaimSpec } } }
  | { image: { reference: string; pullPolicy: string } }
);

export interface PodManifest {
  apiVersion: 'v1';
  kind: 'Pod';
  metadata: Metadata;
  spec: {
    restartPolicy: 'Never';
    activeDeadlineSeconds: number;
    terminationGracePeriodSeconds: number;
    automountServiceAccountToken: false;
    serviceAccountName?: string;
    enableServiceLinks: false;
    hostUsers?: false;
    hostname: string;
    dnsPolicy: 'None' | 'ClusterFirst';
    dnsConfig?: { nameservers: string[] };
    runtimeClassName?: string;
    priorityClassName?: string;
    imagePullSecrets?: { name: string }[];
    nodeSelector?: Record<string, string>;
    tolerations: Toleration[];
    securityContext: {
      runAsNonRoot: true;
      runAsUser: number;
      runAsGroup: number;
      fsGroup: number;
      fsGroupChangePolicy: 'OnRootMismatch';
      seccompProfile: { type: 'RuntimeDefault' };
    };
    initContainers?: Container[];
    containers: [Container];
    volumes: Volume[];
  };
}

export interface ClaimManifest {
  apiVersion: 'v1';
  kind: 'PersistentVolumeClaim';
  metadata: Metadata;
  spec: ClaimSpec;
}

/** Returns the labels of a Pod by their whole names. */
export function toPodLabels(labels: Partial<PodLabels> & { network?: string }): Record<string, string> {
  const given = Object.entries(labels).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [`${PREFIX}${name}`, value]));
}

/** Returns the selector of all Pods and claims of a fleet, or only of those with these labels. */
export function podSelector(labels: Partial<PodLabels>): string {
  const pairs = Object.entries({ ...MANAGED, ...toPodLabels(labels) });
  return pairs.map(([name, value]) => `${name}=${value}`).join(',');
}

export const KEEPER_PROTOCOL_ANNOTATION = `${PREFIX}keeper-protocol`;

/** Returns the manifest of the Pod. Its fields are in the order in which Kubernetes documents them. */
export function toPod(plan: KubernetesPlan, names: PodNames): PodManifest {
  const { cluster, user } = plan;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...toMetadata(plan, names),
      annotations: {
        [KEEPER_PROTOCOL_ANNOTATION]: String(names.keeperProtocol),
        'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
        'karpenter.sh/do-not-disrupt': 'true',
      },
    },
    spec: {
      // A fresh shell never poses as the old one.
      restartPolicy: 'Never',
      activeDeadlineSeconds: Math.ceil(plan.deadlineMs / 1_000),
      terminationGracePeriodSeconds: GRACE_SECONDS,
      automountServiceAccountToken: false,
      ...(cluster.serviceAccount === undefined ? {} : { serviceAccountName: cluster.serviceAccount }),
      enableServiceLinks: false,
      ...(cluster.userNamespaces ? { hostUsers: false } : {}),
      hostname: 'session',
      // Only a session with a whole network may ask the cluster for names.
      ...(plan.network === 'full'
        ? { dnsPolicy: 'ClusterFirst' }
        : { dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } }),
      ...(plan.runtimeClass === undefined ? {} : { runtimeClassName: plan.runtimeClass }),
      ...(cluster.priorityClass === undefined ? {} : { priorityClassName: cluster.priorityClass }),
      ...(cluster.pullSecrets.length === 0 ? {} : { imagePullSecrets: cluster.pullSecrets.map((name) => ({ name })) }),
      ...(Object.keys(cluster.nodeSelector).length === 0 ? {} : { nodeSelector: { ...cluster.nodeSelector } }),
      tolerations: [
        tolerateFor('node.kubernetes.io/not-ready'),
        tolerateFor('node.kubernetes.io/unreachable'),
        ...cluster.tolerations,
      ],
      securityContext: {
        runAsNonRoot: true,
        runAsUser: user.uid,
        runAsGroup: user.gid,
        fsGroup: user.gid,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      ...(cluster.keeper.volume === 'init' ? { initContainers: [toInstaller(plan)] } : {}),
      containers: [toShell(plan, names)],
      volumes: toVolumes(plan, names),
    },
  };
}

/** Returns the claim that is created before the Pod, or undefined if its workspace needs none. */
export function toClaim(plan: KubernetesPlan, names: PodNames): ClaimManifest | undefined {
  if (plan.cluster.workspace.type !== 'persistentVolumeClaim') return undefined;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: toMetadata(plan, names),
    spec: toClaimSpec(plan),
  };
}

function toMetadata({ cluster, network }: KubernetesPlan, { name, labels, owner }: PodNames): Metadata {
  return {
    name,
    namespace: cluster.namespace,
    labels: { ...MANAGED, ...toPodLabels({ ...labels, network }) },
    ownerReferences: [{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...owner, controller: true }],
  };
}

const tolerateFor = (key: string): Toleration => ({
  ...{ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: LOST_NODE_SECONDS },
});

function toInstaller(plan: KubernetesPlan): Container {
  const { cpu, memory, 'ephemeral-storage': storage } = toQuantities(plan);
  const { keeper, pullPolicy } = plan.cluster;
  return {
    name: KEEPER_CONTAINER,
    image: keeper.image,
    imagePullPolicy: pullPolicy,
    command: ['/keeper', '--install', `${KEEPER_DIRECTORY}/keeper`],
    ...UNATTENDED,
    // The scheduler counts the larger of both containers, so those of the shell cost nothing more.
    resources: bothOf({ cpu, memory, 'ephemeral-storage': storage }),
    securityContext: toSecurityContext(true),
    volumeMounts: [{ name: 'sf', mountPath: KEEPER_DIRECTORY }],
  };
}

function toShell(plan: KubernetesPlan, names: PodNames): Container {
  const { cluster, readOnlyRootfs, readOnlyWorkspace } = plan;
  return {
    name: SHELL_CONTAINER,
    image: plan.image,
    imagePullPolicy: cluster.pullPolicy,
    command: [`${KEEPER_DIRECTORY}/keeper`, `tcp:${cluster.port}`, ...plan.shell.map(withoutExpansion)],
    // The keeper takes both keys out of the environment before the shell starts (SANDBOX-2).
    env: [
      { name: 'HOME', value: WORKSPACE_PATH },
      { name: 'SF_LINK_KEY', value: names.linkKey },
      { name: 'SF_LINK_PSK', value: names.linkPsk },
      { name: 'SF_UNCLAIMED_MS', value: String(UNCLAIMED_MS) },
      ...(plan.network === 'limited' ? toProxy(names) : []),
    ],
    workingDir: plan.cwd,
    ports: [{ name: 'keeper', containerPort: cluster.port, protocol: 'TCP' }],
    ...UNATTENDED,
    resources: bothOf({ ...toQuantities(plan), ...toCounts(plan.limits.resources) }),
    securityContext: toSecurityContext(readOnlyRootfs),
    volumeMounts: [
      { name: 'sf', mountPath: KEEPER_DIRECTORY, readOnly: true },
      { name: 'run', mountPath: RUN_DIRECTORY },
      { name: 'workspace', mountPath: WORKSPACE_PATH, ...(readOnlyWorkspace ? { readOnly: true } : {}) },
      ...(readOnlyRootfs ? [{ name: 'tmp', mountPath: '/tmp' }] : []),
    ],
  };
}

/** Returns the variables of the proxy. Who reads the token in the Pod can use it only where the proxy is reachable. */
function toProxy({ name, proxy }: PodNames): { name: string; value: string }[] {
  if (proxy === undefined) throw new Error(`the Pod ${name} has the network 'limited' and no proxy`);
  return Object.entries(proxyVariables(proxy)).map(([variable, value]) => ({ name: variable, value }));
}

/** Settings of a container that nobody attaches to. The kubelet keeps what it prints, so the keeper prints nothing. */
const UNATTENDED = { stdin: false, tty: false, terminationMessagePolicy: 'File' } as const;

function toSecurityContext(readOnlyRootFilesystem: boolean): Container['securityContext'] {
  return {
    privileged: false,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem,
  };
}

function toVolumes(plan: KubernetesPlan, names: PodNames): Volume[] {
  const { keeper, pullPolicy } = plan.cluster;
  // Pages of a directory in memory count as memory of the session.
  const tmpBytes = Math.min(Math.floor(plan.limits.memoryBytes / 2), TMP_BYTES);
  return [
    keeper.volume === 'image'
      ? { name: 'sf', image: { reference: keeper.image, pullPolicy } }
      : { name: 'sf', emptyDir: { sizeLimit: String(KEEPER_BYTES) } },
    inMemory('run', RUN_DIRECTORY_BYTES),
    { name: 'workspace', ...toWorkspace(plan, names) },
    ...(plan.readOnlyRootfs ? [inMemory('tmp', tmpBytes)] : []),
  ];
}

function toWorkspace(plan: KubernetesPlan, { name }: PodNames) {
  const { type, sizeBytes } = plan.cluster.workspace;
  if (type === 'emptyDir') return { emptyDir: { sizeLimit: String(sizeBytes) } };
  if (type === 'persistentVolumeClaim') return { persistentVolumeClaim: { claimName: name } };
  return { ephemeral: { volumeClaimTemplate: { spec: toClaimSpec(plan) } } };
}

function toClaimSpec({ cluster: { workspace } }: KubernetesPlan): ClaimSpec {
  return {
    accessModes: ['ReadWriteOnce'],
    ...(workspace.storageClass === undefined ? {} : { storageClassName: workspace.storageClass }),
    resources: { requests: { storage: String(workspace.sizeBytes) } },
  };
}

const inMemory = (name: string, bytes: number): Volume => ({
  ...{ name, emptyDir: { medium: 'Memory', sizeLimit: String(bytes) } },
});

function toQuantities({ limits }: KubernetesPlan) {
  return {
    // Kubernetes counts whole thousandths. A limit is never raised.
    cpu: `${Math.floor(Math.round(limits.cpus * 1e6) / 1e3)}m`,
    memory: String(limits.memoryBytes),
    'ephemeral-storage': String(limits.ephemeralStorageBytes),
  };
}

const toCounts = (resources: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(resources).map(([name, count]) => [name, String(count)]));

/** Returns requests that equal the limits: a session gets all that it may use, and nobody evicts it for others. */
const bothOf = (quantities: Record<string, string>) => ({ requests: { ...quantities }, limits: { ...quantities } });

/** Escapes a word, in which the kubelet would otherwise replace `$(NAME)` by the variable. */
const withoutExpansion = (word: string) => word.replaceAll('$', () => '$$');
