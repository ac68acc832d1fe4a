import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { EventLoopUtilization } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

export interface FakeShellProcessOptions {
  redisUrl: string;
  namespace: string;
  sealKey: string;
  /** Ids of the hosts. */
  ids: readonly string[];
  /** Slots of each host. */
  slots: number;
}

/** Workers with shells in memory in other processes, for more of them than one process has time for. */
export interface FakeShellProcesses extends AsyncDisposable {
  /** Returns how busy each process has been since its start. */
  utilization(): Promise<EventLoopUtilization[]>;
}

const program = fileURLToPath(new URL('./fake-shell-process.ts', import.meta.url));

/** Starts a worker for each id, in so many processes. Disposing of them kills the processes. */
export async function startFakeShellProcesses(
  count: number,
  { ids, ...options }: FakeShellProcessOptions,
): Promise<FakeShellProcesses> {
  const children = Array.from({ length: Math.min(count, ids.length) }, (_, index) => {
    const own: FakeShellProcessOptions = { ...options, ids: ids.filter((_id, at) => at % count === index) };
    const execArgv = ['--conditions=@shellfleet/source', '--no-warnings'];
    return fork(program, [JSON.stringify(own)], { execArgv, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  });
  const kill = () => Promise.all(children.map(killAndWait));
  try {
    await Promise.all(children.map((child) => nextMessage(child)));
  } catch (error) {
    await kill();
    throw error;
  }
  return {
    utilization: () =>
      Promise.all(
        children.map((child) => {
          const answer = nextMessage(child);
          child.send('utilization');
          return answer as Promise<EventLoopUtilization>;
        }),
      ),
    async [Symbol.asyncDispose]() {
      await kill();
    },
  };
}

/** Rejects if the process ends before its next message. */
async function nextMessage(child: ChildProcess): Promise<unknown> {
  const given = new AbortController();
  const { signal } = given;
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a process with workers ended with ${code}`);
  });
  try {
    const [message] = await Promise.race([once(child, 'message', { signal }), ended]);
    return message;
  } finally {
    given.abort();
    ended.catch(() => {});
  }
}

async function killAndWait(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
