import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ClientTask } from './client-task.ts';

/** Supervisor of a client process, which it restarts after each fault until the client has every Result. */
export interface ClientSupervisor {
  readonly name: string;
  signal(signal: NodeJS.Signals): void;
  /**
   * Resolves when the client has ended by itself. Rejects when the client has ended with an error that no fault
   * caused.
   */
  readonly ended: Promise<void>;
  /** Last part of the client's stderr, which tells why it repeats its calls. */
  readonly errors: string;
  /** Ends the client of a run that is given up. */
  stop(): Promise<void>;
}

export function startClient(program: string, task: ClientTask): ClientSupervisor {
  let child: ChildProcess;
  let stopped = false;
  let errors = '';
  const start = () => {
    const args = ['--conditions=@shellfleet/source', '--no-warnings', program, JSON.stringify(task)];
    child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    return child;
  };
  const run = async (): Promise<void> => {
    for (;;) {
      const running = start();
      errors = '';
      running.stderr?.on('data', (data: Buffer) => {
        errors = (errors + data.toString()).slice(-4_000);
      });
      const [code, signal] = await once(running, 'exit');
      if (code === 0 || stopped) return;
      if (signal === null) throw new Error(`The client ${task.name} ended with ${code}: ${errors}`);
    }
  };
  const ended = run();
  ended.catch(() => {});
  return {
    name: task.name,
    signal: (signal) => child.kill(signal),
    ended,
    get errors() {
      return errors;
    },
    async stop() {
      stopped = true;
      child.kill('SIGCONT');
      child.kill('SIGKILL');
      await ended.catch(() => {});
    },
  };
}
