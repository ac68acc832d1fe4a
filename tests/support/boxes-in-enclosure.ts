// Sandboxes whose keeper runs on this machine behind bubblewrap or Codex (the enclosure), for the tests of these
// policies.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keeperPath, launcherPath } from '@shellfleet/keeper';
import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { createHostSandboxes, type HostSandboxesOptions, type Sandbox, type Sandboxes } from '@shellfleet/worker';
import { attachTransport, listenForKeeper, openKeeperShell } from '@shellfleet/worker/shell';
import { filesIn, processesOf } from './host-leftovers.ts';
import { ShellClient } from './shell-client.ts';

export interface BoxInEnclosure {
  sandbox: Sandbox;
  client: ShellClient;
}

export interface BoxesInEnclosure {
  readonly options: HostSandboxesOptions;
  readonly sandboxes: Sandboxes;
  start(spec?: SessionSpec): Promise<BoxInEnclosure>;
  /** Connects to a running shell, as the next worker does. */
  connect(sandbox: Sandbox, fence: number, start?: boolean): Promise<ShellClient>;
  /** All files of the host that are named after the sandbox. */
  filesOf(sandbox: Sandbox): Promise<string[]>;
  /** The pids of the enclosure and of the launcher, which is its parent. */
  processesOf(sandbox: Sandbox): Promise<{ enclosure: number; launcher: number }>;
  /** Removes all sandboxes. Fails when a process of their user is left. */
  close(): Promise<void>;
}

export async function openBoxesInEnclosure(
  uid: number,
  openEnclosure: (directory: string) => Promise<NonNullable<HostSandboxesOptions['enclosure']>>,
): Promise<BoxesInEnclosure> {
  const namespace = `test-${uid}-${process.pid}`;
  const parent = await mkdtemp(join(tmpdir(), 'sf-wall-'));
  const directory = join(parent, 'h');
  const enclosure = await openEnclosure(directory);
  const options: HostSandboxesOptions = {
    namespace,
    hostKey: Buffer.alloc(32, 7),
    directory,
    keeperPath: await keeperPath(),
    launcherPath: await launcherPath(),
    user: { user: String(uid), sharedUid: false },
    workspaces: ['/var/lib'],
    bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
    controlGroups: { top: '/sys/fs/cgroup', below: `shellfleet/${namespace}` },
    hidden: [parent],
    sockets: [],
    enclosure,
  };
  const sandboxes = await createHostSandboxes(options);
  const made: Sandbox[] = [];
  const files = () => filesIn(parent, options.controlGroups.below);

  const connect: BoxesInEnclosure['connect'] = async (sandbox, fence, start = false) => {
    const { link } = sandbox;
    const signal = AbortSignal.timeout(20_000);
    if (link.type === 'attach') {
      if (start) await sandbox.start();
      const transport = attachTransport(await link.open(), Buffer.from(link.syncWord, 'hex'));
      return new ShellClient(await openKeeperShell({ transport, fence, token: link.token, signal }));
    }
    if (link.type !== 'socket') throw new Error('these keepers dial a socket');
    const { path, token } = link;
    const listener = await listenForKeeper({ path, token });
    try {
      if (start) await sandbox.start();
      return new ShellClient(
        await openKeeperShell({ transport: await listener.accept({ signal }), fence, token, signal }),
      );
    } finally {
      listener.close();
    }
  };

  let sessions = 0;
  return {
    options,
    sandboxes,
    connect,
    async filesOf({ id }) {
      return (await files()).filter((path) => path.includes(id));
    },
    async processesOf({ id }) {
      const record = (await files()).find((path) => path.includes('/r/') && path.includes(id));
      const [enclosure, , launcher] = (await readFile(join(record ?? '', 'process'), 'utf8')).split(' ').map(Number);
      return { enclosure: enclosure ?? -1, launcher: launcher ?? -1 };
    },
    async start(spec = {}) {
      const session = { namespace, tenant: 'acme', session: `s${sessions++}` };
      const sandbox = await sandboxes.create(session, sessionSpecSchema.parse({ policy: enclosure.policy, ...spec }));
      made.push(sandbox);
      return { sandbox, client: await connect(sandbox, 1, true) };
    },
    async close() {
      for (const sandbox of made) await sandbox.remove();
      await sandboxes.close();
      await rm(parent, { recursive: true, force: true });
      const left = await processesOf(uid);
      if (left.length > 0) throw new Error(`processes of uid ${uid} are left: ${left.join(', ')}`);
    },
  };
}
