import type { PreparedDeath, PreparedOptions, ProcessLimits } from '../prepared-processes.ts';
import type { ToolProcessEnd, ToolProcessOptions } from '../tool-process.ts';

/** Messages from the worker. `configure` is the first one. */
export type ToLauncher =
  | { type: 'configure'; options: Omit<PreparedOptions, 'onDeath'> }
  | { type: 'prepare'; limits: ProcessLimits }
  | { type: 'run'; id: number; limits: ProcessLimits; call: Omit<ToolProcessOptions, 'signal'> }
  | { type: 'stop'; id: number }
  | { type: 'clear' | 'close' };

export type FromLauncher =
  | { type: 'ended'; id: number; end: ToolProcessEnd }
  | { type: 'prepared-died'; death: PreparedDeath };
