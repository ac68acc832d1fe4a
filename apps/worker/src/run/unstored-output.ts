import type { OutputEntry, StreamName } from '@shellfleet/protocol';

/**
 * Pieces of output that Redis does not have yet, by the raw offset up to which it has each stream. An append whose reply was lost may have
 * stored some of them. Undefined when Redis has none of them, but other offsets than these begin at.
 */
export function unstoredOutput(
  output: readonly OutputEntry[],
  offsets: Readonly<Record<StreamName, number>>,
): OutputEntry[] | undefined {
  const unstored = output.filter(({ stream, rawFrom }) => rawFrom >= offsets[stream]);
  return unstored.length < output.length ? unstored : undefined;
}
