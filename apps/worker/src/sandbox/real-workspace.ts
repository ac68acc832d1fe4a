import { realpath } from 'node:fs/promises';
import { type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';

/** Resolves links, because the policy judges the real path of a folder. */
export async function withRealWorkspace(spec: ResolvedSessionSpec): Promise<ResolvedSessionSpec> {
  if (spec.workspace === undefined) return spec;
  const workspace = await realpath(spec.workspace).catch((cause: unknown) => {
    const issues = [{ path: 'workspace', message: 'is not a folder of this host' }];
    throw new ShellfleetError(
      'SANDBOX_UNAVAILABLE',
      `The host has no folder ${spec.workspace} to mount.`,
      { issues },
      { cause },
    );
  });
  return { ...spec, workspace };
}
