/** One of the ways to run commands that are compared. */
export interface Row {
  name: RowName;
  /** Runs one no-op command and waits for its result; `turn` counts from 0. Checks the result. */
  one(script: Script, turn: number): Promise<void>;
  /**
   * Runs `perSession` commands of `echo hi` in each of the first `sessions` sessions, and reads every result. Rows with
   * a queue submit all at once; in the others each session is a caller who runs one command after the other.
   */
  many(sessions: number, perSession: number): Promise<void>;
  /** Process that does the work; undefined if it is not the bench's own. */
  workerPid: number | undefined;
  close(): Promise<void>;
}

export const ROW_NAMES = [
  'floor',
  'bullmq',
  'docker-exec',
  'docker-exec-cli',
  'docker-attach',
  'node-pty',
  'shellfleet',
] as const;
export type RowName = (typeof ROW_NAMES)[number];

export const SCRIPTS = ['true', 'echo hi'] as const;
export type Script = (typeof SCRIPTS)[number];

export const outputOf = (script: Script): string => (script === 'true' ? '' : 'hi\n');

export function expectOutput(found: string, script: Script): void {
  if (found !== outputOf(script)) throw new Error(`${script} gave ${JSON.stringify(found)}`);
}

/** Runs the load of a row without a queue: each session is a caller who runs one command after the other. */
export async function eachInTurn(
  sessions: number,
  perSession: number,
  run: (session: number) => Promise<void>,
): Promise<void> {
  const caller = async (_: unknown, session: number): Promise<void> => {
    for (let turn = 0; turn < perSession; turn++) await run(session);
  };
  await Promise.all(Array.from({ length: sessions }, caller));
}
