import type { Redaction } from '../src/redaction/compile.ts';
import { REDACTION_CONTEXT_BYTES, type Redactor } from '../src/redaction/redactor.ts';

/** The results of a redactor for one input, which tests compare. */
export interface Fed {
  output: string;
  counts: Record<string, number>;
  blocked: Redactor['blocked'];
}

export function feed(redactor: Redactor, parts: readonly Uint8Array[]): Fed {
  const released = [...parts.map((part) => redactor.push(part)), redactor.end()];
  return {
    output: Buffer.concat(released).toString('latin1'),
    counts: { ...redactor.counts },
    blocked: redactor.blocked,
  };
}

/** Returns the pieces between `offsets`, which may be in any order. */
export function cutAt(bytes: Uint8Array, offsets: readonly number[]): Uint8Array[] {
  const cuts = [0, ...offsets.toSorted((a, b) => a - b), bytes.length];
  return cuts.slice(1).map((to, index) => bytes.subarray(cuts[index], to));
}

/** Feeds one redactor up to `offset`, and then a new one that gets only the last released bytes. */
export function feedRestarted(redaction: Redaction, bytes: Uint8Array, offset: number): Fed {
  const first = redaction.redactor();
  const released = first.push(bytes.subarray(0, offset));
  if (first.blocked)
    return { output: released.toString('latin1'), counts: { ...first.counts }, blocked: first.blocked };
  const second = redaction.redactor({ before: released.subarray(-REDACTION_CONTEXT_BYTES) });
  const rest = feed(second, [bytes.subarray(offset - first.pendingBytes)]);
  const counts = { ...first.counts };
  for (const [type, count] of Object.entries(rest.counts)) counts[type] = (counts[type] ?? 0) + count;
  return { ...rest, output: released.toString('latin1') + rest.output, counts };
}
