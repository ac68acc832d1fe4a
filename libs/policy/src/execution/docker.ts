import {
  type FieldIssue,
  type ResolvedSandbox,
  type ResolvedSessionSpec,
  refusedSandbox,
  resolveSandbox,
  type Workspace,
  withDefaultLimits,
  workspaceOf,
} from '@shellfleet/protocol';
import { checkBounds, checkEnforceable, type HostBounds } from '../limits.ts';
import { checkFormats } from './check-formats.ts';
import { checkCwd, checkWorkspace } from './folders.ts';
import { isListedImage } from './image-list.ts';
import { refuse, withSetting } from './refusal.ts';
import { checkAllowed, DEFAULT_SANDBOX_ALLOWANCES, type SandboxAllowances } from './sandbox-modes.ts';
import { type SessionImages, toDefaultImage, toWholeName } from './session-images.ts';
import { DEFAULT_USER, type SessionUser, toSessionUser } from './user.ts';

// The docker policy as data. A producer may ask for less freedom than the operator of a host allows, never for more. A
// limit that cannot be enforced is refused, never weakened (invariant 9). The syntax of the spec was checked at submit;
// this file checks it against the host that would run it.

/** Everything that the operator of this host allows, and the resources of the host. */
export interface DockerAllowances {
  /** Whole names, repositories, or prefixes that end in '/'. 'any' allows every image. */
  images: readonly string[] | 'any';
  /** How many containers the host keeps for a post-mortem. Default: none. */
  kept?: number;
  /** The whole names of `full` and `slim`. Default: those of a host on which no `up` has run. */
  sessionImages?: SessionImages | undefined;
  /** Image of a session that names none. `full` means `slim` while the host does not have the full one. */
  defaultImage: string;
  /** 'root': uid or gid 0. 'image': user names, and the image's own default user. */
  users: readonly ('root' | 'image')[];
  /** Each session has a uid of its own, which no spec chooses. Default: sessions have DEFAULT_USER. */
  ownUids?: boolean;
  /** Folders of the host below which a session may name its workspace. */
  workspaces: readonly string[];
  bounds: HostBounds;
  /** Runtimes that a session may name. Default: none. */
  runtimes?: readonly string[];
  /** Most that a session's sandbox may be given. Default: DEFAULT_SANDBOX_ALLOWANCES. */
  sandbox?: SandboxAllowances;
  /** Whether a session may have its output without the built-in redaction of formats. Default: no. */
  redactFormats?: boolean;
}

const NO_DISK_QUOTA = "this host's storage driver cannot bound the disk of a container";
const OWN_UIDS = 'this host gives each session a uid of its own: leave it out';
/** The setting by which an operator allows more users. */
export const USERS_SETTING = 'SHELLFLEET_USERS, or allow.users of SHELLFLEET_CONFIG';
const KEEPS_NONE = withSetting('this host keeps no container', 'SHELLFLEET_KEEP_CONTAINERS');
const NO_CPU_TIME = 'the docker policy cannot bound CPU seconds: use limits.cpus and timeoutMs';

/** The container's settings, fully decided. */
export interface DockerPlan {
  image: string;
  /** The image to use where the host lacks `image`. */
  otherwiseImage?: string;
  /** `uid:gid` or a name. Undefined: the image's own user. */
  user: string | undefined;
  /** Owner of /workspace when the worker creates it. */
  owner: { uid: number; gid: number };
  readOnlyRootfs: boolean;
  /** A folder of the host, and where it is mounted. Undefined: the session has its empty /workspace only. */
  workspace: Workspace | undefined;
  /** As the engine names it. Undefined: the engine's usual one. */
  runtime: string | undefined;
  /** Also of the empty one. */
  readOnlyWorkspace: boolean;
  network: ResolvedSandbox['network'];
  /** The directory in which the shell starts. */
  cwd: string;
  limits: {
    memoryBytes: number;
    cpus: number;
    pids: number;
    diskBytes: number | undefined;
    fileSizeBytes: number | undefined;
  };
}

/**
 * Throws SANDBOX_UNAVAILABLE, with every field that is refused.
 * The caller has resolved the symbolic links of `spec.workspace`.
 */
export function planDocker(spec: ResolvedSessionSpec, allowances: DockerAllowances): DockerPlan {
  const user = toSessionUser(spec.user ?? DEFAULT_USER);
  const { image, otherwise } =
    spec.image === undefined
      ? toDefaultImage(allowances.defaultImage, allowances.sessionImages)
      : { image: toWholeName(spec.image, allowances.sessionImages), otherwise: undefined };
  const { memoryBytes, cpus, pids, cpuTimeSeconds, diskBytes, fileSizeBytes } = withDefaultLimits(spec.limits);
  refuse([
    ...checkDockerOffer(spec, allowances),
    ...checkCwd(spec.cwd),
    ...checkEnforceable('limits.cpuTimeSeconds', cpuTimeSeconds, NO_CPU_TIME),
    ...refusedSandbox(spec),
  ]);
  const { mode, network } = resolveSandbox(spec);
  const isReadOnly = mode === 'read-only';
  const workspace = workspaceOf(spec);
  return {
    image,
    ...(otherwise === undefined ? {} : { otherwiseImage: otherwise }),
    user: user.name,
    owner: user.owner,
    readOnlyRootfs: isReadOnly || (spec.policy.type === 'docker' && spec.policy.readOnlyRootfs),
    workspace: workspace && { ...workspace, readOnly: isReadOnly || workspace.readOnly },
    readOnlyWorkspace: isReadOnly || workspace?.readOnly === true,
    network,
    runtime: runtimeOf(spec),
    cwd: spec.cwd,
    limits: { memoryBytes, cpus, pids, diskBytes, fileSizeBytes },
  };
}

/** What of the spec this host refuses, and another may run. */
export function checkDockerOffer(spec: ResolvedSessionSpec, allowances: DockerAllowances): FieldIssue[] {
  const { memoryBytes, cpus, pids, diskBytes } = withDefaultLimits(spec.limits);
  const { bounds } = allowances;
  return [
    ...(spec.image === undefined ? [] : checkImage(toWholeName(spec.image, allowances.sessionImages), allowances)),
    ...checkUser(toSessionUser(spec.user ?? DEFAULT_USER), spec.user, allowances),
    ...checkWorkspace(workspaceOf(spec)?.path, allowances.workspaces),
    ...checkRuntime(runtimeOf(spec), allowances),
    ...(spec.keepOnFailure && (allowances.kept ?? 0) === 0 ? [{ path: 'keepOnFailure', message: KEEPS_NONE }] : []),
    ...checkBounds({ memoryBytes, cpus, pids }, bounds),
    ...(bounds.diskQuota ? [] : checkEnforceable('limits.diskBytes', diskBytes, NO_DISK_QUOTA)),
    ...checkFormats(spec, allowances),
    ...checkAllowed(spec, allowances.sandbox ?? DEFAULT_SANDBOX_ALLOWANCES),
  ];
}

const runtimeOf = ({ policy }: ResolvedSessionSpec) => (policy.type === 'docker' ? policy.runtime : undefined);

function checkImage(image: string, { images, defaultImage, sessionImages }: DockerAllowances): FieldIssue[] {
  if (images === 'any') return [];
  const listed = images.map((one) => toWholeName(one, sessionImages));
  if (isListedImage(image, listed)) return [];
  const { image: usual, otherwise } = toDefaultImage(defaultImage, sessionImages);
  if (image === usual || image === otherwise) return [];
  const message = withSetting(`${image} is not on this host's list of images`, 'SHELLFLEET_IMAGES');
  return [{ path: 'image', message }];
}

function checkRuntime(runtime: string | undefined, { runtimes = [] }: DockerAllowances): FieldIssue[] {
  if (runtime === undefined || runtimes.includes(runtime)) return [];
  const allowed = runtimes.length === 0 ? 'none' : runtimes.join(', ');
  const message = `${runtime} is not among the runtimes that this host allows: ${allowed}`;
  return [{ path: 'policy.runtime', message: withSetting(message, 'allow.runtimes of SHELLFLEET_CONFIG') }];
}

function checkUser(user: SessionUser, asked: string | undefined, { users, ownUids }: DockerAllowances): FieldIssue[] {
  if (ownUids === true && asked !== undefined && !user.needs)
    return [{ path: 'user', message: withSetting(OWN_UIDS, 'SHELLFLEET_UIDS') }];
  if (!user.needs || users.includes(user.needs)) return [];
  const what = user.needs === 'root' ? 'root' : "users by name, nor the image's own (give uid:gid)";
  return [{ path: 'user', message: withSetting(`this host does not allow ${what}`, USERS_SETTING) }];
}
