import { type DockerPlan, WORKSPACE_PATH } from '@shellfleet/policy';
import type { SandboxTransport } from '../sandbox.ts';
import { HOSTS, KEEPER_DIRECTORY } from './container-options.ts';
import type { Engine } from './engine.ts';
import { createTar, type TarItem } from './tar.ts';

/** Lists the files that the container needs before its start. The engine would create the workspace as root. */
export async function listFiles(
  plan: DockerPlan,
  passwd: string | undefined,
  transport: SandboxTransport,
  readKeeper: () => Promise<Buffer>,
): Promise<TarItem[]> {
  const entries: TarItem[] = [];
  if (!plan.readOnlyRootfs && plan.workspace?.target !== WORKSPACE_PATH) {
    entries.push({ path: `${WORKSPACE_PATH.slice(1)}/`, mode: 0o755, ...plan.owner });
  }
  if (!isMounted(plan, transport)) {
    const directory = `${KEEPER_DIRECTORY.slice(1)}/`;
    const data = await readKeeper();
    entries.push({ path: directory, mode: 0o755, uid: 0, gid: 0 });
    entries.push({ path: `${directory}keeper`, mode: 0o555, uid: 0, gid: 0, data });
    entries.push({ path: 'etc/hosts', mode: 0o644, uid: 0, gid: 0, data: Buffer.from(HOSTS) });
    if (passwd !== undefined)
      entries.push({ path: 'etc/passwd', mode: 0o644, uid: 0, gid: 0, data: Buffer.from(passwd) });
  }
  return entries;
}

/** Copies files into a container that has not started. */
export async function putFiles(engine: Engine, containerId: string, files: readonly TarItem[]): Promise<void> {
  if (files.length === 0) return;
  const archive = await createTar(files);
  await engine.call((docker, abortSignal) =>
    docker.getContainer(containerId).putArchive(archive, { path: '/', abortSignal }),
  );
}

/** Tells whether the keeper's directory is mounted. Over attach it is copied, unless a read-only root prevents that. */
export function isMounted(plan: DockerPlan, transport: SandboxTransport): boolean {
  return transport === 'socket' || plan.readOnlyRootfs;
}
