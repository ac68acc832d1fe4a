import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type ResolvedSessionSpec, ShellfleetError, toWorkspaceField, workspaceOf } from '@shellfleet/protocol';

/** Resolves the links of a workspace, or of its parents if it is missing, because the policy checks its real path. */
export async function withRealWorkspace(spec: ResolvedSessionSpec): Promise<ResolvedSessionSpec> {
  const given = workspaceOf(spec);
  if (given === undefined) return spec;
  const path = await realPathOf(given.path);
  return { ...spec, workspace: toWorkspaceField({ ...given, path }) };
}

async function realPathOf(path: string): Promise<string> {
  const missing: string[] = [];
  // The loop ends at the root directory at the latest. A '..' behind a missing directory would lead out of the resolved
  // path.
  for (let at = path.replace(/\/+$/, '') || '/'; ; at = dirname(at)) {
    try {
      return join(await realpath(at), ...missing);
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      const name = at.slice(at.lastIndexOf('/') + 1);
      if (!isMissing || name === '.' || name === '..') throw notThere(path, error);
      missing.unshift(name);
    }
  }
}

function notThere(path: string, cause: unknown): ShellfleetError {
  const issues = [{ path: 'workspace', message: 'is not a directory of this host' }];
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host has no directory ${path} to mount.`,
    { issues },
    { cause },
  );
}
