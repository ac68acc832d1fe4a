// Real containers with the real keeper, for the tests of the shell. Tests use the worker's own Shell.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { chmod, copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex, PassThrough } from 'node:stream';
import { keeperPath } from '@shellfleet/keeper';
import {
  attachTransport,
  KeeperDialer,
  type KeeperListener,
  listenForKeeper,
  openKeeperShell,
  type Shell,
  type Transport,
} from '@shellfleet/worker/shell';
import Docker from 'dockerode';

export type KeeperTransport = 'socket' | 'attach' | 'tcp';

/** Port on which a keeper of transport `tcp` listens. */
export const KEEPER_PORT = 7443;

export interface KeeperContainerOptions {
  dockerHost: string;
  image: string;
  transport?: KeeperTransport;
  /** Command line of the user's shell, which the keeper gets as its arguments. */
  shell?: string[];
  env?: Record<string, string>;
  user?: string;
  readOnlyRootfs?: boolean;
  pids?: number;
  memoryBytes?: number;
  /** More tmpfs mounts: options by path. */
  tmpfs?: Record<string, string>;
}

const MIB = 1 << 20;
const addresses: Record<KeeperTransport, string> = {
  socket: '/.shellfleet/socket',
  attach: '-',
  tcp: `tcp:${KEEPER_PORT}`,
};

interface DialOptions {
  keys?: Pick<LinkKeys, 'privateKey' | 'psk'>;
  host?: string | Promise<string>;
}

export type LinkKeys = ReturnType<typeof makeLinkKeys>;

export function makeLinkKeys() {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  return { privateKey, publicKey: Buffer.from(x, 'base64url'), psk: randomBytes(32) };
}

export interface ConnectOptions {
  start?: boolean;
  fence?: number;
  signal?: AbortSignal;
  /** Messages of the keeper's own log. */
  onMessage?: (message: string) => void;
}

/** A keeper, in a container or on the host. */
export interface KeeperBox extends AsyncDisposable {
  readonly token: string;
  /** Sync word that begins each frame of the keeper over attach. */
  readonly sync: Uint8Array;
  readonly socketPath: string;
  /** Transport of the last connection, which tests can break. */
  wire: Transport | undefined;
  /** Adopts the shell like the next worker. Default of the fence: the next number. */
  connect(options?: ConnectOptions): Promise<Shell>;
  listen(): Promise<KeeperListener>;
  /** Exit code of the keeper, after its end. */
  exitCode(): Promise<number | null>;
}

export class KeeperContainer implements KeeperBox {
  readonly transport: KeeperTransport;
  readonly token: string;
  readonly sync: Uint8Array;
  readonly container: Docker.Container;
  /** Keys of a keeper that is dialled, and of its worker. */
  readonly keys: LinkKeys;
  /** Directory of this machine that the container has read-only as /.shellfleet. */
  readonly directory: string;
  readonly #parent: string;
  /** Transport of the last connection, which tests can break. */
  wire: Transport | undefined;
  #fence = 0;

  private constructor(
    transport: KeeperTransport,
    parent: string,
    container: Docker.Container,
    { token, sync, keys }: { token: string; sync: Uint8Array; keys: LinkKeys },
  ) {
    this.transport = transport;
    this.#parent = parent;
    this.directory = join(parent, 's');
    this.container = container;
    this.token = token;
    this.sync = sync;
    this.keys = keys;
  }

  static async create(options: KeeperContainerOptions): Promise<KeeperContainer> {
    const transport = options.transport ?? 'socket';
    const parent = await mkdtemp(join(tmpdir(), 'sf-keeper-')); // 0700
    const directory = join(parent, 's');
    await mkdir(directory);
    await chmod(directory, 0o711);
    await copyFile(await keeperPath(), join(directory, 'keeper'));
    const keys = makeLinkKeys();
    const token = transport === 'tcp' ? '0'.repeat(64) : randomBytes(32).toString('hex');
    const sync = randomBytes(8);
    const secrets =
      transport === 'tcp'
        ? { SF_LINK_KEY: keys.publicKey.toString('hex'), SF_LINK_PSK: keys.psk.toString('hex') }
        : { SF_TOKEN: token, ...(transport === 'attach' && { SF_SYNC: sync.toString('hex') }) };
    const docker = new Docker({ socketPath: options.dockerHost.replace('unix://', '') });
    const memory = options.memoryBytes ?? 256 * MIB;
    const container = await docker.createContainer({
      Image: options.image,
      Entrypoint: ['/.shellfleet/keeper', addresses[transport]],
      Cmd: options.shell ?? [],
      Env: Object.entries({ ...secrets, ...options.env }).map(([name, value]) => `${name}=${value}`),
      Labels: { 'shellfleet.test': 'keeper' },
      NetworkDisabled: transport !== 'tcp',
      User: options.user ?? '1000:1000',
      WorkingDir: '/tmp',
      OpenStdin: transport === 'attach',
      StdinOnce: false,
      Tty: false,
      HostConfig: {
        NetworkMode: transport === 'tcp' ? 'bridge' : 'none',
        // A kubelet keeps what a container prints, and the keeper that it runs is dialled.
        LogConfig: { Type: transport === 'tcp' ? 'json-file' : 'none', Config: {} },
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        PidsLimit: options.pids ?? 256,
        Memory: memory,
        MemorySwap: memory,
        Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }],
        ReadonlyRootfs: options.readOnlyRootfs ?? false,
        Binds: [`${directory}:/.shellfleet:ro`],
        Tmpfs: {
          '/run/shellfleet': 'rw,noexec,nosuid,nodev,size=16m,mode=1777',
          '/tmp': 'rw,exec,size=64m,mode=1777',
          ...options.tmpfs,
        },
      },
    });
    return new KeeperContainer(transport, parent, container, { token, sync, keys });
  }

  /** Starts the container and claims its shell. */
  static async start(options: KeeperContainerOptions): Promise<{ box: KeeperContainer; shell: Shell }> {
    const box = await KeeperContainer.create(options);
    try {
      return { box, shell: await box.connect({ start: true }) };
    } catch (error) {
      await box[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Adopts the shell like the next worker. Default of the fence: the next number. */
  async connect(options: ConnectOptions = {}): Promise<Shell> {
    const fence = options.fence ?? ++this.#fence;
    this.#fence = Math.max(this.#fence, fence);
    const signal = options.signal ?? AbortSignal.timeout(25_000);
    const claim = { fence, token: this.token, signal, ...(options.onMessage && { onMessage: options.onMessage }) };
    if (this.transport === 'attach') {
      const stream = await this.attach();
      if (options.start) await this.container.start();
      this.wire = attachTransport(stream, this.sync);
      return openKeeperShell({ ...claim, transport: this.wire });
    }
    if (this.transport === 'tcp') {
      if (options.start) await this.container.start();
      this.wire = await this.dial(signal);
      return openKeeperShell({ ...claim, transport: this.wire });
    }
    const listener = await this.listen();
    try {
      if (options.start) await this.container.start();
      this.wire = await listener.accept({ signal });
      return await openKeeperShell({ ...claim, transport: this.wire });
    } finally {
      listener.close();
    }
  }

  /** Dials the keeper, by default with the keys that it trusts. */
  dial(signal: AbortSignal, { keys = this.keys, host = this.address() }: DialOptions = {}): Promise<Transport> {
    const { privateKey, psk } = keys;
    const address = async () => ({ host: await host, port: KEEPER_PORT });
    return new KeeperDialer({ type: 'tcp', token: this.token, address, privateKey, psk }, () => {}).connect(signal);
  }

  async address(): Promise<string> {
    return (await this.container.inspect()).NetworkSettings.Networks.bridge?.IPAddress ?? '';
  }

  get socketPath(): string {
    return join(this.directory, 'socket');
  }

  listen() {
    return listenForKeeper({ path: this.socketPath, token: this.token });
  }

  /** Returns a stream of the stdin and stdout of the keeper. */
  async attach(): Promise<Duplex> {
    const stream = await this.container.attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true });
    const stdout = new PassThrough();
    this.container.modem.demuxStream(stream, stdout, new PassThrough().resume());
    stream.on('close', () => stdout.end());
    stream.on('end', () => stdout.end());
    const duplex = Duplex.from({ readable: stdout, writable: stream });
    duplex.on('close', () => stream.end());
    return duplex;
  }

  async exitCode(): Promise<number | null> {
    await this.container.wait();
    return (await this.container.inspect()).State.ExitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.container.remove({ force: true }).catch(() => {});
    await rm(this.#parent, { recursive: true, force: true });
  }
}
