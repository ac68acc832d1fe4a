import type { Stage } from './stage.ts';

/** Why nothing more of a command's output is given out. */
export interface Blocked {
  type: string;
  reason: 'matched' | 'too-slow';
}

/** The stage of the chain that finds and replaces what nobody is to read, in one stream of one command. */
export interface Redactor extends Stage {
  /** How often each type was found in what was released so far, or stands for it. */
  readonly counts: Readonly<Record<string, number>>;
  /** Set by the first match of a rule that blocks: then it releases nothing more, and holds nothing. */
  readonly blocked: Blocked | undefined;
}

/** `before`: what was released last, where an earlier chain has worked on the same stream. */
export type CreateRedactor = (options: { before?: Uint8Array }) => Redactor;

/** As much of `before` as any rule looks back at. */
export const CONTEXT_BYTES = 1024;

export function addCounts(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Record<string, number> {
  const sum = { ...a };
  for (const [type, count] of Object.entries(b)) sum[type] = (sum[type] ?? 0) + count;
  return sum;
}

export function totalOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
