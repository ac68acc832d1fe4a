import { registerHooks } from 'node:module';
import type { FakeShellProcessOptions } from './fake-shell-processes.ts';

// Workers with shells in memory, in a process of their own. Started with FakeShellProcessOptions as JSON. Sends a
// message when all workers run, and answers each message with how busy the process has been so far. Ends with its
// parent.

const CONNECT_SHELL = `
export const connectShell = async (sandbox) => sandbox.keeper.connect();
export const connectKeeper = () => Promise.reject(new Error('there is no keeper'));
`;

registerHooks({
  load(url, context, nextLoad) {
    if (!url.endsWith('/apps/worker/src/shell/connect-shell.ts')) return nextLoad(url, context);
    return { format: 'module', source: CONNECT_SHELL, shortCircuit: true };
  },
});
process.on('disconnect', () => process.exit());

const { ids, ...options }: FakeShellProcessOptions = JSON.parse(process.argv[2] ?? '');
// The workers' modules are loaded after the hook.
const { startFakeShellWorker } = await import('./fake-shell-worker.ts');
for (const id of ids) await startFakeShellWorker({ ...options, id });
process.on('message', () => process.send?.(performance.eventLoopUtilization()));
process.send?.('started');
