// The real keeper on the host itself, as the host policy starts it, for the tests of the shell.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keeperPath, launcherPath } from '@shellfleet/keeper';
import { sessionSpecSchema } from '@shellfleet/protocol';
import { createHostSandboxes, type Sandbox, type Sandboxes } from '@shellfleet/worker';
import {
  type KeeperListener,
  listenForKeeper,
  openKeeperShell,
  type Shell,
  type Transport,
} from '@shellfleet/worker/shell';
import type { ConnectOptions, KeeperBox } from './keeper-container.ts';

export interface KeeperOnHostOptions {
  shell?: string[];
  pids?: number;
  memoryBytes?: number;
}

const SESSION_USER = '4717:4717';

export class KeeperOnHost implements KeeperBox {
  readonly sync = new Uint8Array();
  readonly token: string;
  readonly socketPath: string;
  readonly #parent: string;
  readonly #sandboxes: Sandboxes;
  readonly #sandbox: Sandbox;
  wire: Transport | undefined;
  #fence = 0;

  private constructor(parent: string, sandboxes: Sandboxes, sandbox: Sandbox) {
    if (sandbox.link.type !== 'socket') throw new Error('the keeper of a host shell dials a socket');
    this.#parent = parent;
    this.#sandboxes = sandboxes;
    this.#sandbox = sandbox;
    this.token = sandbox.link.token;
    this.socketPath = sandbox.link.path;
  }

  static async start(options: KeeperOnHostOptions): Promise<{ box: KeeperOnHost; shell: Shell }> {
    const parent = await mkdtemp(join(tmpdir(), 'sf-host-'));
    const name = randomBytes(6).toString('hex');
    const sandboxes = await createHostSandboxes({
      namespace: name,
      hostKey: randomBytes(32),
      directory: parent,
      keeperPath: await keeperPath(),
      launcherPath: await launcherPath(),
      user: { user: SESSION_USER, sharedUid: false },
      workspaces: [],
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
      controlGroups: { top: '/sys/fs/cgroup', below: `shellfleet/test-${name}` },
      hidden: [],
      sockets: [],
    });
    const { shell, pids = 256, memoryBytes = 2 ** 28 } = options;
    const spec = sessionSpecSchema.parse({
      policy: 'host',
      limits: { pids, memoryBytes, cpus: 2 },
      ...(shell === undefined ? {} : { shell }),
    });
    const sandbox = await sandboxes.create({ namespace: name, tenant: 'test', session: 'shell' }, spec);
    const box = new KeeperOnHost(parent, sandboxes, sandbox);
    try {
      return { box, shell: await box.connect({ start: true }) };
    } catch (error) {
      await box[Symbol.asyncDispose]();
      throw error;
    }
  }

  async connect(options: ConnectOptions = {}): Promise<Shell> {
    const fence = options.fence ?? ++this.#fence;
    this.#fence = Math.max(this.#fence, fence);
    const signal = options.signal ?? AbortSignal.timeout(25_000);
    const listener = await this.listen();
    try {
      if (options.start) await this.#sandbox.start();
      this.wire = await listener.accept({ signal });
      return await openKeeperShell({ fence, token: this.token, signal, transport: this.wire });
    } finally {
      listener.close();
    }
  }

  listen(): Promise<KeeperListener> {
    return listenForKeeper({ path: this.socketPath, token: this.token });
  }

  async exitCode(): Promise<number | null> {
    return (await this.#sandbox.died).exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox.remove();
    await this.#sandboxes.close();
    await rm(this.#parent, { recursive: true, force: true });
  }
}
