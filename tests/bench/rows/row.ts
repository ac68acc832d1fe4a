/** One of the ways to run commands that are compared. */
export interface Row {
  name: RowName;
  /** Runs one no-op command and waits for its result; `turn` counts from 0. Checks the result. */
  one(script: Script, turn: number): Promise<void>;
  /** Submits `perSession` commands of `echo hi` for each of the first `sessions` sessions at once, and reads every result. */
  many(sessions: number, perSession: number): Promise<void>;
  /** The process that does the work; undefined if it is not the bench's own. */
  workerPid: number | undefined;
  close(): Promise<void>;
}

export const ROW_NAMES = ['floor', 'bullmq', 'docker-exec', 'shellfleet'] as const;
export type RowName = (typeof ROW_NAMES)[number];

export const SCRIPTS = ['true', 'echo hi'] as const;
export type Script = (typeof SCRIPTS)[number];

export const outputOf = (script: Script): string => (script === 'true' ? '' : 'hi\n');

export function expectOutput(found: string, script: Script): void {
  if (found !== outputOf(script)) throw new Error(`${script} gave ${JSON.stringify(found)}`);
}
