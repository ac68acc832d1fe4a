// One row of the table of shell semantics: steps in one session, each with its expected result.
import type { Ran, RunOptions } from '../shell-client.ts';

export type ShellName = 'bash' | 'dash' | 'ash';

/**
 * The expected end of a step. In the state `resumed` the shell has re-executed itself: bash keeps everything, the
 * others report what they cannot keep. In the state `signalled` a signal has ended the shell: bash saves its state
 * before it ends, and a new process continues with that state. In the state `mended` the loop has had to undo
 * something, which the builtin of bash need not do.
 */
type Expected = Partial<Omit<Ran, 'state' | 'out' | 'err'>> & {
  state?: Ran['state'] | 'resumed' | 'signalled' | 'mended';
  signal?: string | null;
  out?: string | RegExp;
  err?: string | RegExp;
};

export type Step =
  | { run: string; gives: Expected; with?: RunOptions; withinMs?: number }
  /** The shell and its processes end, and a fresh shell starts. The output is that of its EXIT trap. */
  | { restart: Expected };

export interface Case {
  title: string;
  /**
   * The shells that the row applies to. Default: all. Programs are missing in the image of dash, which has only the
   * shell.
   */
  in?: ShellName[];
  steps: Step[];
}

export const withPrograms: ShellName[] = ['bash', 'ash'];

/** Returns the common step: a script, its output, and a shell whose state is kept. */
export function prints(run: string, out: string | RegExp, options?: RunOptions): Step {
  return { run, gives: { out, state: 'kept' }, ...(options && { with: options }) };
}

export function ends(run: string, gives: Expected, options?: RunOptions): Step {
  return { run, gives, ...(options && { with: options }) };
}
