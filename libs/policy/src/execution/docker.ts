import { type FieldIssue, type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';
import { checkLimits, type HostBounds } from '../limits.ts';
import { isListedImage } from './image-list.ts';
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

export const WORKSPACE_PATH = '/workspace';

/** The caller has resolved the symbolic links of `spec.workspace`: a link could lead out of an allowed folder. */
export function planDocker(spec: ResolvedSessionSpec, allowances: DockerAllowances): DockerPlan {
  const user = toSessionUser(spec.user ?? DEFAULT_USER);
  const image = spec.image ?? allowances.defaultImage;
  const refused = [
    ...checkImage(image, allowances),
    ...checkUser(user, allowances),
    ...checkWorkspace(spec.workspace, allowances),
    ...checkCwd(spec.cwd),
    ...checkLimits(spec.limits, allowances.bounds),
  ];
  if (refused.length > 0) throw refusal(refused);
  const { memoryBytes, cpus, pids, diskBytes } = spec.limits;
  return {
    image,
    user: user.name,
    owner: user.owner,
    readOnlyRootfs: spec.policy.readOnlyRootfs,
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

function checkWorkspace(workspace: string | undefined, { workspaces }: DockerAllowances): FieldIssue[] {
  if (workspace === undefined || workspaces.some((folder) => isWithin(workspace, folder))) return [];
  return [{ path: 'workspace', message: 'is not below a folder that this host lets sessions mount' }];
}

/** Entered by the engine before the container is closed off: a descriptor of the host must not be named (CVE-2024-21626). */
function checkCwd(cwd: string): FieldIssue[] {
  const isKernels = ['/proc', '/sys', '/dev'].some((folder) => isWithin(cwd.replace(/\/+/g, '/'), folder));
  return isKernels || cwd.split('/').includes('..') ? [{ path: 'cwd', message: 'must be an ordinary folder' }] : [];
}

function isWithin(path: string, folder: string): boolean {
  const base = folder.replace(/\/+$/, '');
  if (base === '' || path.split('/').includes('..')) return false;
  return path === base || path.startsWith(`${base}/`);
}

function refusal(issues: FieldIssue[]): ShellfleetError {
  const list = issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ');
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host does not run what the session asks for. ${list}. Ask for less, or have the operator of the host allow it.`,
    { issues },
  );
}
