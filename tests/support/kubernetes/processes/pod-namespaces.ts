import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { keeperPath } from '@shellfleet/keeper';

/** Addresses of the two ends of the link between this machine and the namespace, and the range behind it. */
const [NEAR, FAR, RANGE] = ['198.18.0.1', '198.18.0.2', '198.18.16.0/20'];
const MOST_ADDRESSES = 4_000;
const USER = '1000';

/** Makes a root directory with the programs of this machine, and lives until its stdin is closed. */
const HOLD = `set -e
mount -t tmpfs root "$1"
cd "$1"
mkdir -p usr etc dev proc run/shellfleet tmp workspace sf
for path in /bin /sbin /lib /lib64; do [ ! -L $path ] || cp -P $path .; done
for path in usr etc dev; do mount --rbind /$path $path; done
chmod 1777 tmp
cp "$2" sf/keeper
ip link set lo up
echo ready
exec cat`;

/** Gives the keeper what a container has: directories of its own, a user, and no capabilities. */
const ENTER = `set -e
mount -t proc proc /proc
mount -t tmpfs -o uid=${USER},gid=${USER},mode=700 run /run/shellfleet
mount -t tmpfs -o uid=${USER},gid=${USER} workspace /workspace
cd /workspace
exec setpriv --reuid ${USER} --regid ${USER} --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@"`;

/**
 * A network namespace with many addresses, in which each process has a pid namespace and directories of its own. The
 * kernel ends all of them, and removes the network, when this process ends in whatever way.
 */
export class PodNamespaces implements AsyncDisposable {
  /** Addresses of the namespace, to which this machine has a route. */
  readonly addresses: readonly string[];
  readonly #holder: ChildProcess;
  readonly #pid: number;
  readonly #root: string;
  readonly #processes = new Set<ChildProcess>();

  private constructor(made: { holder: ChildProcess; pid: number; root: string; addresses: readonly string[] }) {
    this.addresses = made.addresses;
    this.#holder = made.holder;
    this.#pid = made.pid;
    this.#root = made.root;
  }

  static async open(count: number): Promise<PodNamespaces> {
    if (process.getuid?.() !== 0) throw new Error('network namespaces need root');
    if (count > MOST_ADDRESSES) throw new Error(`at most ${MOST_ADDRESSES} addresses are possible`);
    const root = await mkdtemp(join(tmpdir(), 'sf-namespaces-'));
    const flags = ['--mount', '--net', '--pid', '--fork', '--kill-child'];
    const args = [...flags, 'sh', '-c', HOLD, 'sh', root, await keeperPath()];
    const holder = spawn('unshare', args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const failed = once(holder, 'exit').then(() => Promise.reject(new Error('the namespaces cannot be made')));
    await Promise.race([once(holder.stdout, 'data'), failed]);
    failed.catch(() => {});
    const [pid = 0] = await childrenOf(holder.pid ?? 0);
    // Behind a route, since a machine keeps at most about a thousand neighbours.
    const addresses = Array.from(
      { length: count },
      (_, index) => `198.18.${16 + ((index + 1) >> 8)}.${(index + 1) & 255}`,
    );
    const namespaces = new PodNamespaces({ holder, pid, root, addresses });
    await namespaces.#connect().catch(async (error) => {
      await namespaces[Symbol.asyncDispose]();
      throw error;
    });
    return namespaces;
  }

  /** Starts a program as the first process of a pid namespace. It is ended by {@link kill}. */
  start(command: readonly string[], env: Record<string, string>): ChildProcess {
    const enter = ['-t', String(this.#pid), '--mount', '--net', '--pid'];
    const unshare = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--root', this.#root];
    const args = [...enter, ...unshare, 'sh', '-c', ENTER, 'sh', ...command];
    const started = spawn('nsenter', args, { env: { PATH: process.env.PATH, ...env }, stdio: 'ignore' });
    this.#processes.add(started);
    started.once('exit', () => this.#processes.delete(started));
    return started;
  }

  /** Kills the first process of a pid namespace, and with it all others. */
  async kill(started: ChildProcess): Promise<void> {
    while (this.#processes.has(started)) {
      const [unshare] = await childrenOf(started.pid ?? 0);
      const [first] = unshare === undefined ? [] : await childrenOf(unshare);
      if (first !== undefined) killIfThere(first);
      await delay(20);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = [this.#holder, ...this.#processes].map(async (one) => {
      if (one.exitCode === null && one.signalCode === null) await once(one, 'exit');
    });
    this.#holder.stdin?.end();
    await Promise.all(ends);
    await rm(this.#root, { recursive: true });
  }

  async #connect(): Promise<void> {
    const link = `sfpods${process.pid}`;
    await ip([], [`link add ${link} type veth peer name eth0 netns ${this.#pid}`]);
    const inside = [
      `addr add ${FAR}/30 dev eth0`,
      ...this.addresses.map((address) => `addr add ${address}/32 dev eth0`),
    ];
    await ip(['nsenter', '-t', String(this.#pid), '--net'], [...inside, 'link set eth0 up']);
    await ip([], [`addr add ${NEAR}/30 dev ${link}`, `link set ${link} up`, `route add ${RANGE} via ${FAR}`]);
  }
}

/** Runs lines of `ip` in one process, which the words before it start. */
async function ip(before: readonly string[], lines: readonly string[]): Promise<void> {
  const [program = '', ...args] = [...before, 'ip', '-batch', '-'];
  const running = promisify(execFile)(program, args);
  running.child.stdin?.end(lines.join('\n'));
  await running;
}

async function childrenOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return children.trim().split(' ').filter(Boolean).map(Number);
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
