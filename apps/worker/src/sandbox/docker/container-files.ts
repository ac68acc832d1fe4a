import { type DockerPlan, WORKSPACE_PATH } from '@shellfleet/policy';
import type { SandboxTransport } from '../sandbox.ts';
import { HOSTS, KEEPER_DIRECTORY } from './container-options.ts';
import type { Engine } from './engine.ts';
import { HOME_MODE, ImageHomes } from './image-homes.ts';
import { createTar, type TarItem } from './tar.ts';

interface Needs {
  plan: DockerPlan;
  /** Digest of the image. */
  image: string;
  /** Text of the file of users, if the session has its own uid. */
  passwd: string | undefined;
}

/** Copies into containers, before their start, what they need and cannot be mounted. */
export class ContainerFiles {
  readonly #engine: Engine;
  readonly #homes: ImageHomes;
  readonly #transport: SandboxTransport;
  readonly #readKeeper: () => Promise<Buffer>;

  constructor(engine: Engine, transport: SandboxTransport, readKeeper: () => Promise<Buffer>) {
    this.#engine = engine;
    this.#homes = new ImageHomes(engine);
    this.#transport = transport;
    this.#readKeeper = readKeeper;
  }

  /** Copies the files into a container that has not started. Makes no call of the engine if there are none. */
  async put(containerId: string, needs: Needs): Promise<void> {
    const files = await this.#list(containerId, needs);
    if (files.length === 0) return;
    const archive = await createTar(files);
    await this.#engine.call((docker, abortSignal) =>
      docker.getContainer(containerId).putArchive(archive, { path: '/', abortSignal }),
    );
  }

  /** Lists the files that the container needs. The engine would create the home as root. */
  async #list(containerId: string, { plan, image, passwd }: Needs): Promise<TarItem[]> {
    const home: TarItem[] = [{ path: `${WORKSPACE_PATH.slice(1)}/`, mode: HOME_MODE, ...plan.owner }];
    const needsHome = !plan.readOnlyRootfs && plan.workspace?.target !== WORKSPACE_PATH;
    if (isMounted(plan, this.#transport)) {
      const lacksHome = needsHome && !(await this.#homes.has(image, plan.owner, containerId));
      return lacksHome ? home : [];
    }
    const directory = `${KEEPER_DIRECTORY.slice(1)}/`;
    const root = { uid: 0, gid: 0 };
    return [
      ...(needsHome ? home : []),
      { path: directory, mode: 0o755, ...root },
      { path: `${directory}keeper`, mode: 0o555, ...root, data: await this.#readKeeper() },
      { path: 'etc/hosts', mode: 0o644, ...root, data: Buffer.from(HOSTS) },
      ...(passwd === undefined ? [] : [{ path: 'etc/passwd', mode: 0o644, ...root, data: Buffer.from(passwd) }]),
    ];
  }
}

/** Tells whether the keeper's directory is mounted. Over attach it is copied, unless a read-only root prevents that. */
export function isMounted(plan: DockerPlan, transport: SandboxTransport): boolean {
  return transport === 'socket' || plan.readOnlyRootfs;
}
