import { type ResolvedSessionSpec, resolveSandbox, workspaceOf } from '@shellfleet/protocol';
import { type HostAllowances, type HostPolicyPlan, planHost } from './host.ts';

// Plans policy `bubblewrap`: the plan of policy `host` (user, limits, workspace, private directories) with bubblewrap
// around the shell. The session's root directory contains only what is listed here.

export interface BubblewrapPlan extends HostPolicyPlan {
  readOnlyWorkspace: boolean;
  /** Whether the session has the host's network instead of none. */
  sharesNetwork: boolean;
}

/** Parts of the host's root directory that the session gets: links as they are, and directories read-only. */
export interface HostRoot {
  programs: readonly { path: string; linkTo: string | undefined }[];
  /** The KERNEL_FILES that this kernel has. */
  kernelFiles: readonly string[];
}

/** Directories with the host's programs. On most systems all but /usr are links into it. */
export const PROGRAM_DIRECTORIES = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'] as const;

/** Parts of /etc that programs need: names of users, libraries, certificates, time zones. No keys. */
const SETTINGS = toPaths(`
  alternatives bash.bashrc ca-certificates debian_version group inputrc ld.so.cache ld.so.conf ld.so.conf.d locale.conf localtime
  mime.types nsswitch.conf os-release passwd pki/ca-trust/extracted pki/tls/certs profile profile.d protocols services shells
  ssl/certs ssl/openssl.cnf terminfo timezone`);
const NAMES_OF_HOSTS = toPaths('hosts resolv.conf');

/** Files of /proc that belong to the kernel and not to a process. They are masked, as in a container. */
export const KERNEL_FILES = ['keys', 'key-users', 'kcore', 'kmsg', 'timer_list', 'sched_debug', 'latency_stats'].map(
  (name) => `/proc/${name}`,
);

/** Descriptor number under which the launcher opens the seccomp filter. */
export const FILTER_DESCRIPTOR = 10;

/** Plans the session. Throws SANDBOX_UNAVAILABLE with every refused field. */
export function planBubblewrap(spec: ResolvedSessionSpec, allowances: HostAllowances): BubblewrapPlan {
  const { mode, network } = resolveSandbox(spec);
  return {
    ...planHost(spec, allowances),
    readOnlyWorkspace: mode === 'read-only' || workspaceOf(spec)?.readOnly === true,
    sharesNetwork: network === 'full',
  };
}

/** Returns bubblewrap's arguments before the program. The root is a tmpfs, which is read-only once it is made. */
export function bubblewrapArguments(
  { readOnlyWorkspace, sharesNetwork }: BubblewrapPlan,
  { programs, kernelFiles }: HostRoot,
): string[] {
  return [
    // --die-with-parent refers to the launcher, which is the parent and outlives the worker.
    ...['--unshare-all', '--die-with-parent', '--new-session', '--as-pid-1', '--cap-drop', 'ALL'],
    ...(sharesNetwork ? ['--share-net'] : []),
    ...['--hostname', 'shellfleet'],
    ...programs.flatMap(({ path, linkTo }) =>
      linkTo === undefined ? ['--ro-bind', path, path] : ['--symlink', linkTo, path],
    ),
    ...[...SETTINGS, ...(sharesNetwork ? NAMES_OF_HOSTS : [])].flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', '--ro-bind', '/proc/sys', '/proc/sys'],
    ...kernelFiles.flatMap((path) => ['--ro-bind', '/dev/null', path]),
    ...['--dev', '/dev', '--remount-ro', '/dev'],
    ...['--ro-bind', '/sys/fs/cgroup', '/sys/fs/cgroup'],
    ...['/dev/shm', '/tmp'].flatMap((path) => ['--bind', path, path]),
    ...['--bind', '/tmp', '/var/tmp'],
    ...[readOnlyWorkspace ? '--ro-bind' : '--bind', '/workspace', '/workspace'],
    ...['--ro-bind', '/.shellfleet', '/.shellfleet', '--bind', '/.shellfleet-run', '/.shellfleet-run'],
    ...['--seccomp', String(FILTER_DESCRIPTOR), '--remount-ro', '/', '--chdir', '/workspace', '--'],
  ];
}

function toPaths(names: string): string[] {
  return names
    .split(/\s+/)
    .filter(Boolean)
    .map((name) => `/etc/${name}`);
}
