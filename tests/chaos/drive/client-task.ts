import type { SessionSpec } from '@shellfleet/client';

/** Argument of a client process, as JSON. */
export interface ClientTask {
  name: string;
  redisUrl: string;
  namespace: string;
  sealKey: string;
  seed: number;
  sessions: ClientSession[];
  /** Time until which the client submits, in milliseconds of the wall clock. It then waits for every Result. */
  until: number;
  /** File to which the client appends its observations, and from which it continues after a restart. */
  historyPath: string;
}

export interface ClientSession {
  id: string;
  /** Time for which the host may be away before the shell counts as lost. */
  leaseMs: number;
  /** Directory of the host, which outlives the sandbox. */
  workspace?: string;
  spec: SessionSpec;
}
