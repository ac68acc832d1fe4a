import type { FieldIssue } from '@shellfleet/protocol';
import { withSetting } from './refusal.ts';

/** The folder of a session's own files under every policy. It is HOME, and the directory in which the shell starts. */
export const WORKSPACE_PATH = '/workspace';

const MOUNTS_NOT = 'is not below a folder that this host lets sessions mount';

/** The caller has resolved the symbolic links of `workspace`, since a link could lead out of an allowed folder. */
export function checkWorkspace(workspace: string | undefined, allowed: readonly string[]): FieldIssue[] {
  if (workspace === undefined || allowed.some((folder) => isWithin(workspace, folder))) return [];
  return [{ path: 'workspace', message: withSetting(MOUNTS_NOT, 'SHELLFLEET_WORKSPACES') }];
}

/**
 * The engine enters `cwd` before the container is closed off, so
 * it must not name a file descriptor of the host (CVE-2024-21626).
 */
export function checkCwd(cwd: string): FieldIssue[] {
  const isKernels = ['/proc', '/sys', '/dev'].some((folder) => isWithin(cwd.replace(/\/+/g, '/'), folder));
  return isKernels || cwd.split('/').includes('..') ? [{ path: 'cwd', message: 'must be an ordinary folder' }] : [];
}

function isWithin(path: string, folder: string): boolean {
  const base = folder.replace(/\/+$/, '');
  if (base === '' || path.split('/').includes('..')) return false;
  return path === base || path.startsWith(`${base}/`);
}
