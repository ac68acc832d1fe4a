import { realpath } from 'node:fs/promises';
import { type ResolvedSessionSpec, ShellfleetError, workspaceOf } from '@shellfleet/protocol';

/** Resolves links, because the policy judges the real path of a folder. */
export async function withRealWorkspace(spec: ResolvedSessionSpec): Promise<ResolvedSessionSpec> {
  const given = workspaceOf(spec);
  if (given === undefined) return spec;
  const path = await realpath(given.path).catch((cause: unknown) => {
    const issues = [{ path: 'workspace', message: 'is not a folder of this host' }];
    throw new ShellfleetError(
      'SANDBOX_UNAVAILABLE',
      `The host has no folder ${given.path} to mount.`,
      { issues },
      { cause },
    );
  });
  return { ...spec, workspace: given.readOnly ? { path, readOnly: true } : path };
}
