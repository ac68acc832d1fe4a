import type { FieldIssue } from '@shellfleet/protocol';

/** Where a session's own files are, under every policy: home, and where its shell starts. */
export const WORKSPACE_PATH = '/workspace';

/** The caller has resolved the symbolic links of `workspace`: a link could lead out of an allowed folder. */
export function checkWorkspace(workspace: string | undefined, allowed: readonly string[]): FieldIssue[] {
  if (workspace === undefined || allowed.some((folder) => isWithin(workspace, folder))) return [];
  return [{ path: 'workspace', message: 'is not below a folder that this host lets sessions mount' }];
}

/** Entered by the engine before the container is closed off: a descriptor of the host must not be named (CVE-2024-21626). */
export function checkCwd(cwd: string): FieldIssue[] {
  const isKernels = ['/proc', '/sys', '/dev'].some((folder) => isWithin(cwd.replace(/\/+/g, '/'), folder));
  return isKernels || cwd.split('/').includes('..') ? [{ path: 'cwd', message: 'must be an ordinary folder' }] : [];
}

function isWithin(path: string, folder: string): boolean {
  const base = folder.replace(/\/+$/, '');
  if (base === '' || path.split('/').includes('..')) return false;
  return path === base || path.startsWith(`${base}/`);
}
