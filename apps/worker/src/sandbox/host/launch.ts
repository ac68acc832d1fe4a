import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type PolicyName, ShellfleetError } from '@shellfleet/protocol';
import type { HostUser } from './host-user.ts';
import type { RecordDirectory } from './records.ts';

export interface Launch {
  policy: PolicyName;
  launcherPath: string;
  record: Pick<RecordDirectory, 'processPath' | 'endedPath'>;
  user: HostUser;
  /** Directory with the keeper and its socket, mounted read-only at /.shellfleet. */
  keeperDirectory?: string;
  workspace: string;
  /** Size of /tmp, and of /dev/shm. */
  scratchBytes: number;
  /** Arguments that the control groups returned. */
  groups: string[];
  /** Directories of the host that are hidden from sessions, even if their user may read them. */
  hidden: string[];
  addressSpaceBytes: number | undefined;
  cpuTimeSeconds: number | undefined;
  fileSizeBytes: number | undefined;
  program: string[];
  /** File that the launcher opens for the program, at a descriptor that the launcher chooses. */
  descriptor?: string;
  /** Whether the program's stderr is returned with its end. */
  showsErrors?: boolean;
  /** Socket of this host that relays the program's stdin and stdout. Without root, the program's user owns it. */
  relay?: string;
  env: Record<string, string>;
}

/** Starts a confined program, which survives this worker. `ended` resolves with its exit code and stderr. */
export async function launch(request: Launch): Promise<{ ended: Promise<{ code: number | null; said: string }> }> {
  const child = spawn(request.launcherPath, toArguments(request), {
    argv0: 'shellfleet-launch',
    env: request.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const ended = new Promise<{ code: number | null; said: string }>((resolve) => {
    child.once(request.showsErrors ? 'close' : 'exit', (code: number | null) => resolve({ code, said: said.trim() }));
    child.once('error', () => resolve({ code: null, said: '' }));
  });
  child.stderr.on('data', (data) => {
    said += String(data);
  });
  const started = once(child.stdout, 'data').then(() => 'ready');
  const failed = new Promise((resolve) => child.once('close', resolve).once('error', resolve));
  if ((await Promise.race([started, failed])) === 'ready') return { ended };
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The ${request.policy} policy could not start a shell as asked: ${said.trim() || 'its launcher did not run'}.`,
  );
}

function toArguments(request: Launch): string[] {
  const { record, user } = request;
  const optional = (name: string, value: string | number | undefined) =>
    value === undefined ? [] : [name, String(value)];
  return [
    ...['--process', record.processPath, '--ended', record.endedPath],
    ...['--user', `${user.uid}:${user.gid}`, ...(user.isOurs ? ['--same-user'] : [])],
    ...optional('--keeper', request.keeperDirectory),
    ...['--workspace', request.workspace, '--scratch-bytes', String(request.scratchBytes)],
    ...request.groups.flatMap((group) => ['--cgroup', group]),
    ...request.hidden.flatMap((directory) => ['--hide', directory]),
    ...optional('--address-space', request.addressSpaceBytes),
    ...optional('--cpu-seconds', request.cpuTimeSeconds),
    ...optional('--file-size', request.fileSizeBytes),
    ...optional('--descriptor', request.descriptor),
    ...optional('--relay', request.relay),
    ...(request.showsErrors ? ['--show-errors'] : []),
    '--',
    ...request.program,
  ];
}
