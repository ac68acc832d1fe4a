import type { PreparedDeath, PreparedOptions, ProcessLimits } from '../prepared-processes.ts';
import type { ToolProcessEnd, ToolProcessOptions } from '../tool-process.ts';

/** Sent by the worker. `configure` is the first. */
export type ToLauncher =
  | { type: 'configure'; options: Omit<PreparedOptions, 'onDeath'> }
  | { type: 'prepare'; limits: ProcessLimits }
  | { type: 'run'; id: number; limits: ProcessLimits; call: Omit<ToolProcessOptions, 'signal'> }
  | { type: 'stop'; id: number }
  | { type: 'clear' | 'close' };

/** Sent to the worker. */
export type FromLauncher =
  | { type: 'ended'; id: number; end: ToolProcessEnd }
  | { type: 'prepared-died'; death: PreparedDeath };
