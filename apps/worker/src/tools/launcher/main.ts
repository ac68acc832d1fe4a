import { PreparedProcesses } from '../prepared-processes.ts';
import type { ToolProcessEnd } from '../tool-process.ts';
import type { FromLauncher, ToLauncher } from './messages.ts';

// The launcher starts the processes of tool calls. A start copies the page tables of its parent, which would block a
// worker of 300 MB for over 10 ms.

const NOT_STARTED: ToolProcessEnd = {
  ...{ type: 'died', begun: false, exitCode: 127, signal: null, outOfMemory: false },
  ...{ stdout: '', stderr: '' },
};
const stops = new Map<number, AbortController>();
let processes: PreparedProcesses | undefined;

// The worker decides when calls end. Signals to its process group or service reach this process too and are ignored.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
// All processes that the launcher started end with it.
process.on('disconnect', () => process.exit(0));
process.on('message', (message: ToLauncher) => void receive(message));

async function receive(message: ToLauncher): Promise<void> {
  switch (message.type) {
    case 'configure':
      processes = new PreparedProcesses({
        ...message.options,
        onDeath: (death) => send({ type: 'prepared-died', death }),
      });
      return;
    case 'prepare':
      return processes?.prepare(message.limits);
    case 'clear':
      return processes?.clear();
    case 'close':
      return processes?.close();
    case 'stop':
      return stops.get(message.id)?.abort();
    case 'run': {
      const { id, limits, call } = message;
      const stop = new AbortController();
      stops.set(id, stop);
      const end = await processes?.run(limits, { ...call, signal: stop.signal }).catch(() => NOT_STARTED);
      stops.delete(id);
      if (end !== undefined) send({ type: 'ended', id, end });
    }
  }
}

function send(message: FromLauncher): void {
  if (process.connected) process.send?.(message);
}
