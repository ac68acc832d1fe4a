import { z } from 'zod';
import { type ProcessEvents, type SupervisedProcess, superviseProcess } from './supervised-process.ts';
import { workerProgram } from './worker-program.ts';

/** Message of a worker that is ready. */
const readySchema = z.object({ hostId: z.string() });
type Ready = z.output<typeof readySchema>;

export type WorkerProcess = SupervisedProcess<Ready>;

/** Starts a worker, and starts it again when it dies. */
export function superviseWorker(env: NodeJS.ProcessEnv, on: ProcessEvents<Ready>): WorkerProcess {
  return superviseProcess({ args: workerProgram('main'), env: () => env, ready: readySchema }, on);
}
