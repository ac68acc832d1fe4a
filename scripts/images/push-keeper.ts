import { checkoutRoot, ensureKeeperImage, type Machine, type Report, tagImage } from '@shellfleet/setup';
import { docker } from './docker-program.ts';

const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' } as const;

export interface PushKeeperOptions {
  machine: Pick<Machine, 'engine'>;
  report: Report;
  /** Programs of both architectures. */
  programs: Record<keyof typeof ARCHITECTURES, string>;
  /** Name under which nodes of either architecture find their keeper. */
  image: string;
}

/** Pushes the keeper of each architecture, and a list of them under one name. */
export async function pushKeeper({ machine, report, programs, image }: PushKeeperOptions): Promise<void> {
  const { endpoint } = machine.engine;
  const deps = { endpoint, env: process.env, root: checkoutRoot, report };
  const names: string[] = [];
  for (const arch of ['x64', 'arm64'] as const) {
    const name = `${image}-${ARCHITECTURES[arch]}`;
    await tagImage(endpoint, await ensureKeeperImage(deps, programs[arch], arch), name);
    await docker(['push', '--quiet', name]);
    names.push(name);
  }
  // The engine itself allows a registry of this machine to have no TLS; this command has to be told.
  const insecure = /^(127\.0\.0\.1|localhost)[:/]/.test(image) ? ['--insecure'] : [];
  await docker(['manifest', 'create', '--amend', ...insecure, image, ...names]);
  await docker(['manifest', 'push', '--purge', ...insecure, image]);
}
