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
import { checkCwd, checkWorkspace } from './directories.ts';
import { isListedImage } from './image-list.ts';
import { refuse, withSetting } from './refusal.ts';
import { checkAllowed, DEFAULT_SANDBOX_ALLOWANCES, type SandboxAllowances } from './sandbox-modes.ts';
import { type SessionImages, toDefaultImage, toWholeName } from './session-images.ts';
import { DEFAULT_USER, type SessionUser, toSessionUser } from './user.ts';

// Plans policy `docker`. A session may ask for less than the operator of a host allows, never for more. A limit that
// cannot be enforced is refused, never weakened (invariant 9). Submit has checked the syntax of the spec.

export interface DockerAllowances {
  /**
   * Images that a session may name: whole names, repositories, or prefixes that end in '/'. 'any' allows every image.
   */
  images: readonly string[] | 'any';
  /** How many containers the host keeps for a post-mortem. Default: none. */
  kept?: number;
  /** Whole names of the images `full` and `slim`. Default: SESSION_IMAGES. */
  sessionImages?: SessionImages | undefined;
  /** Image of a session that names none. `full` means `slim` while the host lacks the image `full`. */
  defaultImage: string;
  /**
   * Users that a session may name besides plain uids. 'root' allows uid and gid 0. 'image' allows user names and the
   * image's own default user.
   */
  users: readonly ('root' | 'image')[];
  /** Whether each session has a separate uid, which no spec chooses. By default sessions have DEFAULT_USER. */
  ownUids?: boolean;
  /** Directories of the host below which a session may name its workspace. */
  workspaces: readonly string[];
  bounds: HostBounds;
  /** Runtimes that a session may name. Default: none. */
  runtimes?: readonly string[];
  /** The most that a session's sandbox may get. Default: DEFAULT_SANDBOX_ALLOWANCES. */
  sandbox?: SandboxAllowances;
  /** Whether a session may switch off the built-in redaction of formats. Default: no. */
  redactFormats?: boolean;
}

const NO_DISK_QUOTA = "this host's storage driver cannot bound the disk of a container";
const OWN_UIDS = 'this host gives each session a uid of its own: leave it out';
/** The setting with which an operator allows more users. */
export const USERS_SETTING = 'SHELLFLEET_USERS, or allow.users of SHELLFLEET_CONFIG';
const KEEPS_NONE = withSetting('this host keeps no container', 'SHELLFLEET_KEEP_CONTAINERS');
const NO_CPU_TIME = 'the docker policy cannot bound CPU seconds: use limits.cpus and timeoutMs';

export interface DockerPlan {
  image: string;
  /** The image that is used if the host lacks `image`. */
  otherwiseImage?: string;
  /** `uid:gid` or a name. Undefined: the image's own user. */
  user: string | undefined;
  /** Owner of /workspace when the worker creates it. */
  owner: { uid: number; gid: number };
  readOnlyRootfs: boolean;
  /** A directory of the host, and where it is mounted. Undefined: an empty /workspace. */
  workspace: Workspace | undefined;
  /** Runtime, as the engine names it. Undefined: the engine's default. */
  runtime: string | undefined;
  readOnlyWorkspace: boolean;
  network: ResolvedSandbox['network'];
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
 * Plans the session. The symbolic links of `spec.workspace` must be resolved. Throws SANDBOX_UNAVAILABLE with every
 * refused field.
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

/** Returns the fields that this host refuses and another host may accept. */
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
