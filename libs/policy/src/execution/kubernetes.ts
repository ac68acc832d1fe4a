import {
  type FieldIssue,
  LIMITS,
  type ResolvedSandbox,
  type ResolvedSessionSpec,
  refusedSandbox,
  resolveSandbox,
  withDefaultLimits,
} from '@shellfleet/protocol';
import { checkEnforceable } from '../limits.ts';
import { checkFormats } from './check-formats.ts';
import { checkCwd } from './directories.ts';
import { isListedImage } from './image-list.ts';
import { refuse, withSetting } from './refusal.ts';
import { checkAllowed, DEFAULT_SANDBOX_ALLOWANCES, type SandboxAllowances } from './sandbox-modes.ts';
import { type SessionImages, toDefaultImage, toWholeName } from './session-images.ts';
import { DEFAULT_USER, toSessionUser } from './user.ts';

// Plans policy `kubernetes`: a Pod for each session. What no cluster gives a Pod is refused when a spec is opened. Here
// is refused what this operator does not allow. What the cluster does not enforce, its keeper proves later.

/** The settings of the operator for all Pods, from the section `kubernetes` of the configuration file. */
export interface ClusterSettings {
  namespace: string;
  /** Port of the keeper. */
  port: number;
  /** Image with the keeper, and whether an init container or an image volume brings it into the Pod. */
  keeper: { image: string; volume: 'init' | 'image' };
  pullPolicy: 'Always' | 'IfNotPresent' | 'Never';
  serviceAccount?: string | undefined;
  /** Lease that owns the Pods. Undefined: workers make one for the fleet. */
  lease?: string | undefined;
  pullSecrets: readonly string[];
  nodeSelector: Readonly<Record<string, string>>;
  tolerations: readonly Toleration[];
  priorityClass?: string | undefined;
  /** Whether Pods have a user namespace. Old runtimes ignore that silently, so the keeper proves it. */
  userNamespaces: boolean;
  workspace: {
    type: 'emptyDir' | 'persistentVolumeClaim' | 'ephemeral';
    sizeBytes: number;
    storageClass?: string | undefined;
  };
  /** Ephemeral storage of a session that names no `diskBytes`. */
  ephemeralStorageBytes: number;
  /** Names of RuntimeClasses and of resources that a spec may ask for. */
  runtimeClasses: readonly string[];
  resources: readonly string[];
  /** Bound of the kubelets on the processes of a Pod (`podPidsLimit`), as the operator knows it. */
  podPidsLimit?: number | undefined;
  /** Properties that the operator lets a Pod lack (`unenforced`). */
  unenforced: readonly string[];
  /** Address of the egress proxy. Without it, no session has the network `limited`. */
  egress?: { host: string; port: number } | undefined;
}

export interface Toleration {
  key?: string | undefined;
  operator?: 'Exists' | 'Equal' | undefined;
  value?: string | undefined;
  effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute' | undefined;
  tolerationSeconds?: number | undefined;
}

export interface KubernetesAllowances {
  cluster: ClusterSettings;
  /** Images that a session may name, as for policy `docker`. */
  images: readonly string[] | 'any';
  sessionImages?: SessionImages | undefined;
  defaultImage: string;
  /** The most that a session's sandbox may get. Default: DEFAULT_SANDBOX_ALLOWANCES. */
  sandbox?: SandboxAllowances;
  /** Whether a session may switch off the built-in redaction of formats. Default: no. */
  redactFormats?: boolean;
}

export interface KubernetesPlan {
  image: string;
  user: { uid: number; gid: number };
  readOnlyRootfs: boolean;
  readOnlyWorkspace: boolean;
  network: ResolvedSandbox['network'];
  /** Hosts that the network `limited` reaches. */
  allowedHosts: readonly string[];
  cwd: string;
  /** Program and arguments of the shell. Empty: the keeper chooses. */
  shell: readonly string[];
  runtimeClass: string | undefined;
  limits: {
    memoryBytes: number;
    cpus: number;
    /** Bound that the keeper must find in force. Undefined: none is asked for. */
    pids: number | undefined;
    ephemeralStorageBytes: number;
    resources: Readonly<Record<string, number>>;
  };
  /** Age at which the kubelet ends the Pod if everything else failed to. */
  deadlineMs: number;
  cluster: ClusterSettings;
}

const NO_CPU_TIME = 'the kubernetes policy cannot bound CPU seconds: use limits.cpus and timeoutMs';
const NO_FILE_SIZE = 'the kubernetes policy cannot bound the size of a file: use limits.diskBytes';
/** Most characters of `allowedHosts` as JSON. */
const MOST_NAME_CHARS = 7_000;
const SECTION = 'of the section kubernetes in SHELLFLEET_CONFIG';

/** Plans the session. Throws SANDBOX_UNAVAILABLE with every refused field. */
export function planKubernetes(spec: ResolvedSessionSpec, allowances: KubernetesAllowances): KubernetesPlan {
  const { cluster } = allowances;
  const { memoryBytes, cpus } = withDefaultLimits(spec.limits);
  const { cpuTimeSeconds, fileSizeBytes, pids, diskBytes, resources } = spec.limits;
  refuse([
    ...checkKubernetesOffer(spec, allowances),
    ...checkCwd(spec.cwd),
    ...checkEnforceable('limits.cpuTimeSeconds', cpuTimeSeconds, NO_CPU_TIME),
    ...checkEnforceable('limits.fileSizeBytes', fileSizeBytes, NO_FILE_SIZE),
    ...checkHostNames(spec),
    ...refusedSandbox(spec),
  ]);
  const { mode, network, allowedHosts } = resolveSandbox(spec);
  const isReadOnly = mode === 'read-only';
  const { image } = imageOf(spec, allowances);
  return {
    image,
    user: toSessionUser(spec.user ?? DEFAULT_USER).owner,
    readOnlyRootfs: isReadOnly || (spec.policy.type === 'kubernetes' && spec.policy.readOnlyRootfs),
    readOnlyWorkspace: isReadOnly,
    network,
    allowedHosts,
    cwd: spec.cwd,
    shell: spec.shell ?? [],
    runtimeClass: runtimeClassOf(spec),
    limits: {
      ...{ memoryBytes, cpus, pids },
      ephemeralStorageBytes: diskBytes ?? cluster.ephemeralStorageBytes,
      resources: resources ?? {},
    },
    // A command that began just before the greatest age of the shell may still run for the longest time.
    deadlineMs: spec.maxLifetimeMs + LIMITS.timeoutMs + spec.terminationTimeoutMs,
    cluster,
  };
}

/** The settings of a cluster that decide whether a spec is refused. */
type OfferedByCluster = Pick<ClusterSettings, 'runtimeClasses' | 'resources' | 'podPidsLimit' | 'unenforced'> & {
  egress?: ClusterSettings['egress'] | boolean;
};
type OfferedAllowances = Omit<KubernetesAllowances, 'cluster'> & { cluster: OfferedByCluster };

/** Returns the fields that this worker refuses and one of another cluster may accept. */
export function checkKubernetesOffer(spec: ResolvedSessionSpec, allowances: OfferedAllowances): FieldIssue[] {
  const { cluster } = allowances;
  const { pids, resources = {} } = spec.limits;
  return [
    ...checkImage(spec, allowances),
    ...checkListed('policy.runtimeClass', runtimeClassOf(spec), cluster.runtimeClasses, 'runtimeClasses'),
    ...Object.keys(resources).flatMap((name) => checkListed('limits.resources', name, cluster.resources, 'resources')),
    ...checkPids(pids, cluster),
    ...checkFormats(spec, allowances),
    ...checkAllowed(spec, allowances.sandbox ?? DEFAULT_SANDBOX_ALLOWANCES),
    ...checkEgress(spec, cluster),
  ];
}

const runtimeClassOf = ({ policy }: ResolvedSessionSpec) =>
  policy.type === 'kubernetes' ? policy.runtimeClass : undefined;

function imageOf({ image }: ResolvedSessionSpec, { defaultImage, sessionImages }: OfferedAllowances) {
  return image === undefined
    ? toDefaultImage(defaultImage, sessionImages)
    : { image: toWholeName(image, sessionImages) };
}

function checkImage(spec: ResolvedSessionSpec, allowances: OfferedAllowances): FieldIssue[] {
  const { images, defaultImage, sessionImages } = allowances;
  if (spec.image === undefined || images === 'any') return [];
  const { image } = imageOf(spec, allowances);
  const listed = [...images, defaultImage].map((one) => toWholeName(one, sessionImages));
  if (isListedImage(image, listed)) return [];
  const message = withSetting(`${image} is not on this host's list of images`, 'SHELLFLEET_IMAGES');
  return [{ path: 'image', message }];
}

function checkListed(
  path: string,
  asked: string | undefined,
  allowed: readonly string[],
  setting: keyof ClusterSettings,
): FieldIssue[] {
  if (asked === undefined || allowed.includes(asked)) return [];
  const most = allowed.length === 0 ? 'none' : allowed.join(', ');
  return [
    { path, message: withSetting(`${asked} is not among what this host allows: ${most}`, `${setting} ${SECTION}`) },
  ];
}

function checkPids(asked: number | undefined, { podPidsLimit, unenforced }: OfferedByCluster): FieldIssue[] {
  if (asked === undefined || unenforced.includes('pids') || (podPidsLimit ?? Number.POSITIVE_INFINITY) <= asked)
    return [];
  const has = podPidsLimit === undefined ? 'and its operator names none' : `which is ${podPidsLimit} here`;
  const message = `asks for ${asked}, and a Pod has only the limit of its kubelet, ${has}`;
  return [{ path: 'limits.pids', message: withSetting(message, `podPidsLimit or unenforced ${SECTION}`) }];
}

/** Checks that the token with the names is not too long for the heads of requests, with which it is sent. */
function checkHostNames(spec: ResolvedSessionSpec): FieldIssue[] {
  const { length } = JSON.stringify(resolveSandbox(spec).allowedHosts);
  if (length <= MOST_NAME_CHARS) return [];
  const message = `has ${length} characters as JSON, and the proxy of Pods takes ${MOST_NAME_CHARS}: use patterns such as *.example.org`;
  return [{ path: 'sandbox.allowedHosts', message }];
}

function checkEgress(spec: ResolvedSessionSpec, { egress = false }: OfferedByCluster): FieldIssue[] {
  if (egress !== false || resolveSandbox(spec).network !== 'limited') return [];
  const message = withSetting('this fleet has no egress proxy for its Pods', `egress ${SECTION}`);
  return [{ path: 'sandbox.network', message }];
}
