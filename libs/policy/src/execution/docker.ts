import { type FieldIssue, type ResolvedSessionSpec, withDefaultLimits } from '@shellfleet/protocol';
import { checkBounds, checkEnforceable, type HostBounds } from '../limits.ts';
import { checkCwd, checkWorkspace } from './folders.ts';
import { isListedImage } from './image-list.ts';
import { refuse } from './refusal.ts';
import { DEFAULT_USER, type SessionUser, toSessionUser } from './user.ts';

// The docker policy as data. A producer may ask for less freedom than the operator of a host allows, never for more;
// what cannot be enforced is refused, never weakened (invariant 9). That a name is a name and a number is in range was
// settled when the spec was parsed, at submit; here is the word of the host that would run it.

/** What the operator of this host allows, and what the host has. */
export interface DockerAllowances {
  /** Whole names, repositories, or prefixes that end in '/'. 'any': no list. */
  images: readonly string[] | 'any';
  defaultImage: string;
  /** 'root': uid or gid 0. 'image': names, and the user that the image gives itself. */
  users: readonly ('root' | 'image')[];
  /** Folders of the host below which a session may name its workspace. */
  workspaces: readonly string[];
  bounds: HostBounds;
}

const NO_DISK_QUOTA = "this host's storage driver cannot bound the disk of a container";
const NO_CPU_TIME = 'the docker policy cannot bound CPU seconds: use limits.cpus and timeoutMs';

/** What will be enforced, with nothing left to decide. There is no field for a network: a session has none. */
export interface DockerPlan {
  image: string;
  /** `uid:gid`, a name, or undefined: the image's own. */
  user: string | undefined;
  /** Owner of /workspace where the worker makes it. */
  owner: { uid: number; gid: number };
  readOnlyRootfs: boolean;
  /** A folder of the host, mounted at /workspace; undefined: the session gets its own. */
  workspace: string | undefined;
  /** Where the shell starts. */
  cwd: string;
  limits: { memoryBytes: number; cpus: number; pids: number; diskBytes: number | undefined };
}

/** The caller has resolved the symbolic links of `spec.workspace`. */
export function planDocker(spec: ResolvedSessionSpec, allowances: DockerAllowances): DockerPlan {
  const user = toSessionUser(spec.user ?? DEFAULT_USER);
  const image = spec.image ?? allowances.defaultImage;
  const { memoryBytes, cpus, pids, cpuTimeSeconds, diskBytes } = withDefaultLimits(spec.limits);
  const { bounds } = allowances;
  refuse([
    ...checkImage(image, allowances),
    ...checkUser(user, allowances),
    ...checkWorkspace(spec.workspace, allowances.workspaces),
    ...checkCwd(spec.cwd),
    ...checkBounds({ memoryBytes, cpus, pids }, bounds),
    ...(bounds.diskQuota ? [] : checkEnforceable('limits.diskBytes', diskBytes, NO_DISK_QUOTA)),
    ...checkEnforceable('limits.cpuTimeSeconds', cpuTimeSeconds, NO_CPU_TIME),
  ]);
  return {
    image,
    user: user.name,
    owner: user.owner,
    readOnlyRootfs: spec.policy.type === 'docker' && spec.policy.readOnlyRootfs,
    workspace: spec.workspace,
    cwd: spec.cwd,
    limits: { memoryBytes, cpus, pids, diskBytes },
  };
}

function checkImage(image: string, { images, defaultImage }: DockerAllowances): FieldIssue[] {
  if (images === 'any' || image === defaultImage || isListedImage(image, images)) return [];
  return [{ path: 'image', message: `${image} is not on this host's list of images` }];
}

function checkUser(user: SessionUser, { users }: DockerAllowances): FieldIssue[] {
  if (!user.needs || users.includes(user.needs)) return [];
  const what = user.needs === 'root' ? 'root' : "users by name, nor the image's own (give uid:gid)";
  return [{ path: 'user', message: `this host does not allow ${what}` }];
}
