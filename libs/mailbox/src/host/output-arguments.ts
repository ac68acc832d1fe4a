import { encodeOutputEntry, type OutputEntry } from '@shellfleet/protocol';
import type { ScriptArgument } from '@shellfleet/redis';

/** Output entries as the scripts take them: stream, seq, raw from, raw to, entry. */
export function toOutputArguments(entries: readonly OutputEntry[]): ScriptArgument[] {
  return entries.flatMap((entry) => [
    entry.stream === 'stdout' ? 1 : 2,
    entry.seq,
    entry.rawFrom,
    entry.rawTo,
    Buffer.from(encodeOutputEntry(entry)),
  ]);
}
