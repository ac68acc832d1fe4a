// One row of what a shell promises: steps in one session, each with what must come of it.
import type { Ran, RunOptions } from '../shell-client.ts';

export type ShellName = 'bash' | 'dash' | 'ash';

/** `resumed`: the shell has re-executed itself; bash keeps everything, the others say that they cannot. */
type Expected = Partial<Omit<Ran, 'state' | 'out' | 'err'>> & {
  state?: Ran['state'] | 'resumed';
  out?: string | RegExp;
  err?: string | RegExp;
};

export type Step =
  | { run: string; gives: Expected; with?: RunOptions; withinMs?: number }
  /** Everything of the shell ends, and a fresh one comes; what its EXIT trap prints. */
  | { restart: Expected };

export interface Case {
  title: string;
  /** Where it can be said at all; everywhere when left out. The image of dash holds no other program. */
  in?: ShellName[];
  steps: Step[];
}

export const withPrograms: ShellName[] = ['bash', 'ash'];

/** The common step: what is run, what it prints, and nothing else happens. */
export function prints(run: string, out: string | RegExp, options?: RunOptions): Step {
  return { run, gives: { out, state: 'kept' }, ...(options && { with: options }) };
}

export function ends(run: string, gives: Expected, options?: RunOptions): Step {
  return { run, gives, ...(options && { with: options }) };
}
