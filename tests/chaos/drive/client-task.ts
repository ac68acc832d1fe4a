import type { SessionSpec } from '@shellfleet/client';

/** What a client process is started with, as JSON. */
export interface ClientTask {
  name: string;
  redisUrl: string;
  namespace: string;
  sealKey: string;
  seed: number;
  sessions: ClientSession[];
  /** The client submits until this time, and then waits for every Result. Milliseconds of the wall clock. */
  until: number;
  /** It appends what it sees to this file, and continues from it when it is started again. */
  historyPath: string;
}

export interface ClientSession {
  id: string;
  /** How long its host may be away before its shell counts as lost. */
  leaseMs: number;
  /** A folder of the host, which outlives the sandbox. */
  workspace?: string;
  spec: SessionSpec;
}
