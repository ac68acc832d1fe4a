import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { PROGRAMS, PROGRAMS_PATH } from './trial-rules.ts';

export interface TrialShell {
  name: string;
  image: string;
  /** The shell, without the script. */
  command: [string, ...string[]];
}

/** The arguments of each program that a script has started. */
export type Executed = string[][];

const SCRIPT_PATH = '/tmp/script';
const COMPILERS = ['musl-gcc', 'cc', 'gcc', 'clang'];
const run = promisify(execFile);

export interface ShellRunner extends AsyncDisposable {
  /** Runs scripts one after the other. As in a session, the shell reads each from a file. */
  run(shell: TrialShell, scripts: readonly string[]): Promise<Executed[]>;
}

export async function openShellRunner(dockerHost: string): Promise<ShellRunner> {
  const folder = await mkdtemp(join(tmpdir(), 'shellfleet-rules-'));
  await chmod(folder, 0o755);
  const docker = new Docker({ socketPath: dockerHost.replace(/^unix:\/\//, '') });
  await build(join(folder, 'run'));
  await mkdir(join(folder, 'programs'));
  for (const name of PROGRAMS) await symlink('../run', join(folder, 'programs', name));
  return {
    run: (shell, scripts) => runIn(docker, folder, shell, scripts),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function build(program: string): Promise<void> {
  const source = join(import.meta.dirname, 'recorder.c');
  for (const compiler of COMPILERS) {
    const missing = await run(compiler, [
      '-std=gnu11',
      '-static',
      '-Os',
      '-Wall',
      '-Wextra',
      '-o',
      program,
      source,
    ]).then(
      () => false,
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        return true;
      },
    );
    if (!missing) return;
  }
  throw new Error(`No C compiler was found (tried ${COMPILERS.join(', ')}).`);
}

async function runIn(
  docker: Docker,
  folder: string,
  shell: TrialShell,
  scripts: readonly string[],
): Promise<Executed[]> {
  const io = await mkdtemp(join(folder, 'io-'));
  const [input, out] = [join(io, 'scripts'), join(io, 'out')];
  await writeFile(input, Buffer.concat(scripts.map(toFrame)));
  await mkdir(out);
  for (const path of [io, out]) await chmod(path, 0o777);
  const container = await docker.createContainer({
    Image: shell.image,
    User: '65534:65534',
    WorkingDir: '/tmp',
    Env: [`PATH=${PROGRAMS_PATH}`, 'HOME=/tmp', 'x=evil', 'y=;evil', 'evil=-exec evil', 'status=status evil'],
    Entrypoint: ['/trial/run', SCRIPT_PATH, ...shell.command, '-c', `. ${SCRIPT_PATH}`, 'shell', 'evil', '-exec'],
    OpenStdin: true,
    StdinOnce: true,
    HostConfig: {
      Binds: [
        `${join(folder, 'run')}:/trial/run:ro`,
        `${join(folder, 'programs')}:${PROGRAMS_PATH}:ro`,
        `${out}:/trial/out`,
      ],
      Tmpfs: { '/tmp': 'size=16m,mode=1777' },
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      CapDrop: ['ALL'],
      PidsLimit: 256,
      Memory: 256 << 20,
    },
  });
  try {
    const stdin = await container.attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true });
    await container.start();
    stdin.resume();
    stdin.end(await readFile(input));
    const { StatusCode: exitCode } = (await container.wait()) as { StatusCode: number };
    if (exitCode !== 0) throw new Error(`The trial in ${shell.name} ended with exit code ${exitCode}.`);
    return parseLog(await readFile(join(out, 'log')), scripts.length);
  } finally {
    await container.remove({ force: true, v: true });
  }
}

function toFrame(script: string): Buffer {
  const bytes = Buffer.from(script);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function parseLog(log: Buffer, count: number): Executed[] {
  const scripts: Executed[] = [];
  let executed: Executed = [];
  for (let at = 0; at < log.length; ) {
    const length = log.readUInt32LE(at);
    if (length === 0) {
      scripts.push(executed);
      executed = [];
      at += 4;
      continue;
    }
    const argc = log.readUInt32LE(at + 4);
    executed.push(
      log
        .toString('utf8', at + 8, at + length)
        .split('\0')
        .slice(0, argc),
    );
    at += length;
  }
  if (scripts.length !== count) throw new Error(`${scripts.length} of ${count} scripts were recorded.`);
  return scripts;
}
