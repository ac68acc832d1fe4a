import type { FieldIssue } from '@shellfleet/protocol';
import { withSetting } from './refusal.ts';

/** Directory of a session's files under every policy. It is HOME, and the shell starts there. */
export const WORKSPACE_PATH = '/workspace';

const MOUNTS_NOT = 'is not below a directory that this host lets sessions mount';

/**
 * Checks a workspace. Its symbolic links must be resolved before, because a link could lead out of an allowed
 * directory.
 */
export function checkWorkspace(workspace: string | undefined, allowed: readonly string[]): FieldIssue[] {
  if (workspace === undefined || allowed.some((directory) => isWithin(workspace, directory))) return [];
  return [{ path: 'workspace', message: withSetting(MOUNTS_NOT, 'SHELLFLEET_WORKSPACES') }];
}

/**
 * Checks `cwd`. It must not name a file descriptor, because the engine enters the directory before isolation
 * (CVE-2024-21626).
 */
export function checkCwd(cwd: string): FieldIssue[] {
  const isKernels = ['/proc', '/sys', '/dev'].some((directory) => isWithin(cwd.replace(/\/+/g, '/'), directory));
  return isKernels || cwd.split('/').includes('..') ? [{ path: 'cwd', message: 'must be an ordinary directory' }] : [];
}

function isWithin(path: string, directory: string): boolean {
  const base = directory.replace(/\/+$/, '');
  if (base === '' || path.split('/').includes('..')) return false;
  return path === base || path.startsWith(`${base}/`);
}
