import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { inject } from 'vitest';
import { freePort } from './redis-process.ts';
import { until } from './until.ts';

export const USER = 'ada';
export const PASSWORD = 'secret';
/** Line of a password file, with the password as bcrypt. */
const USERS = `${USER}:$2b$04$1rex.G3oUadJk9Vpe2UksuNMwvqCUcTseezbCyZpQnT5h9nLNmLUG\n`;

/** Debian's docker-registry on loopback, which asks for a password. */
export interface ImageRegistry extends AsyncDisposable {
  /** `127.0.0.1:<port>` */
  address: string;
  /** Puts new images of this many random bytes into the registry. They are not on the engine. Returns their names. */
  add(count: number, bytes?: number): Promise<string[]>;
  /** Returns how often the manifest of an image was read. */
  reads(image: string): number;
  kill(): Promise<void>;
  start(): Promise<void>;
}

export async function startImageRegistry(): Promise<ImageRegistry> {
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const directory = await mkdtemp(join(tmpdir(), 'sf-registry-'));
  const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
  await writeFile(join(directory, 'users'), USERS);
  await writeFile(join(directory, 'config.yml'), describe(directory, address));
  let child: ChildProcess | undefined;
  let log = '';
  const start = async () => {
    child = spawn('docker-registry', ['serve', join(directory, 'config.yml')], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    child.stdout?.on('data', (data) => {
      log += String(data);
    });
    const answers = () =>
      fetch(`http://${address}/v2/`)
        .then(({ status }) => status === 401)
        .catch(() => false);
    await until(answers, (isThere) => isThere);
  };
  const kill = async () => {
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    child = undefined;
  };
  const made: string[] = [];
  await start();
  return {
    address,
    start,
    kill,
    async add(count, bytes = 1_000) {
      const names = Array.from({ length: count }, () => `${address}/image-${randomBytes(4).toString('hex')}:1`);
      for (const name of names) await push(docker, directory, name, bytes);
      made.push(...names);
      return names;
    },
    reads: (image) => {
      const [, name] = /\/(image-[0-9a-f]+):1$/.exec(image) ?? [];
      return log.split('\n').filter((line) => line.includes(`GET /v2/${name}/manifests/`)).length;
    },
    async [Symbol.asyncDispose]() {
      await kill();
      for (const name of made)
        await docker
          .getImage(name)
          .remove({ force: true })
          .catch(() => {});
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const describe = (directory: string, address: string) => `version: 0.1
log: { accesslog: { disabled: false }, level: error }
storage: { filesystem: { rootdirectory: ${directory}/data } }
http: { addr: "${address}" }
auth: { htpasswd: { realm: tests, path: ${directory}/users } }
`;

/** Imports an image of one file, pushes it, and removes it from the engine. */
async function push(docker: Docker, directory: string, name: string, bytes: number): Promise<void> {
  const content = join(directory, 'content');
  await writeFile(content, randomBytes(bytes));
  const tar = execFile('tar', ['--create', '--directory', directory, 'content'], { encoding: 'buffer' });
  const colon = name.lastIndexOf(':');
  await finish(
    docker,
    await docker.importImage(tar.stdout!, { repo: name.slice(0, colon), tag: name.slice(colon + 1) }),
  );
  const authconfig = { username: USER, password: PASSWORD, serveraddress: '' };
  await finish(docker, await docker.getImage(name).push({ authconfig }));
  await docker.getImage(name).remove();
}

const finish = (docker: Docker, progress: NodeJS.ReadableStream) =>
  new Promise<void>((resolve, reject) =>
    docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve())),
  );
