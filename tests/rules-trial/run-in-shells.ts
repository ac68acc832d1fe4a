import { chmod, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { buildStatic } from './build-static.ts';
import { runFrames } from './run-frames.ts';
import { PROGRAMS, PROGRAMS_PATH } from './trial-rules.ts';

export interface TrialShell {
  name: string;
  image: string;
  /** Command line of the shell, without the script. */
  command: [string, ...string[]];
}

/** Arguments of each program that a script has started. */
export type Executed = string[][];

const SCRIPT_PATH = '/tmp/script';

export interface ShellRunner extends AsyncDisposable {
  /** Runs scripts one after the other. As in a session, the shell reads each from a file. */
  run(shell: TrialShell, scripts: readonly string[]): Promise<Executed[]>;
}

export async function openShellRunner(dockerHost: string): Promise<ShellRunner> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-rules-'));
  await chmod(directory, 0o755);
  const docker = new Docker({ socketPath: dockerHost.replace(/^unix:\/\//, '') });
  await buildStatic(join(import.meta.dirname, 'recorder.c'), join(directory, 'run'));
  await mkdir(join(directory, 'programs'));
  for (const name of PROGRAMS) await symlink('../run', join(directory, 'programs', name));
  return {
    run: (shell, scripts) => runIn(docker, directory, shell, scripts),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

async function runIn(
  docker: Docker,
  directory: string,
  shell: TrialShell,
  scripts: readonly string[],
): Promise<Executed[]> {
  const log = await runFrames(docker, directory, {
    image: shell.image,
    entrypoint: ['/trial/run', SCRIPT_PATH, ...shell.command, '-c', `. ${SCRIPT_PATH}`, 'shell', 'evil', '-exec'],
    env: [`PATH=${PROGRAMS_PATH}`, 'HOME=/tmp', 'x=evil', 'y=;evil', 'evil=-exec evil', 'status=status evil'],
    binds: [`${join(directory, 'programs')}:${PROGRAMS_PATH}:ro`],
    frames: scripts.map((script) => Buffer.from(script)),
  });
  return parseLog(log, scripts.length);
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
