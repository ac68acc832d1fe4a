import { PreparedProcesses } from '../prepared-processes.ts';
import type { ToolProcessEnd } from '../tool-process.ts';
import type { FromLauncher, ToLauncher } from './messages.ts';

// Starts the processes of tool calls for a worker, and gives them their calls. A start copies the page tables of the process that it is done in,
// which takes a worker of 300 MB over 10 ms, during which it serves no session; this process is small.

const NOT_STARTED: ToolProcessEnd = {
  ...{ type: 'died', begun: false, exitCode: 127, signal: null, outOfMemory: false },
  ...{ stdout: '', stderr: '' },
};
const stops = new Map<number, AbortController>();
let processes: PreparedProcesses | undefined;

// The worker decides when calls end. Signals to its process group, or to its service, reach this process, too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
// Every process that it started ends with it.
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
      // Without memory for another process, this call alone fails.
      const end = await processes?.run(limits, { ...call, signal: stop.signal }).catch(() => NOT_STARTED);
      stops.delete(id);
      if (end !== undefined) send({ type: 'ended', id, end });
    }
  }
}

function send(message: FromLauncher): void {
  if (process.connected) process.send?.(message);
}
