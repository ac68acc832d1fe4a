/**
 * Synchronous stage of the output chain, without I/O. `push` returns the bytes to release. `pendingBytes` counts the
 * pending input: only released bytes may be acknowledged to the keeper.
 */
export interface Stage {
  push(bytes: Buffer): Buffer;
  end(): Buffer;
  readonly pendingBytes: number;
}

/** Why the rest of a command's output is withheld. */
export interface Blocked {
  type: string;
  reason: 'matched' | 'too-slow';
}

/** Stage that finds and replaces secrets and other findings in one stream of one command. */
export interface RedactionStage extends Stage {
  /** How often each type was found in the bytes that were released or replaced so far. */
  readonly counts: Readonly<Record<string, number>>;
  /** Set by the first match of a rule that blocks. After that, nothing is released or pending. */
  readonly blocked: Blocked | undefined;
}

/** Creates the redactor of one stream. `before`: last bytes of the stream that an earlier chain released. */
export type CreateRedactor = (options: { before?: Uint8Array }) => RedactionStage;

/** Most bytes of `before` that any rule looks at. */
export const CONTEXT_BYTES = 1024;

export function addCounts(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  if (isEmpty(a) && isEmpty(b)) return NONE;
  const sum = { ...a };
  // A rule may be called `constructor`, which every object has.
  for (const [type, count] of Object.entries(b)) sum[type] = (Object.hasOwn(a, type) ? (a[type] ?? 0) : 0) + count;
  return sum;
}

const NONE: Readonly<Record<string, number>> = Object.freeze({});

function isEmpty(counts: Readonly<Record<string, number>>): boolean {
  for (const _ in counts) return false;
  return true;
}

export function totalOf(counts: Readonly<Record<string, number>>): number {
  let total = 0;
  for (const type in counts) total += counts[type] ?? 0;
  return total;
}
