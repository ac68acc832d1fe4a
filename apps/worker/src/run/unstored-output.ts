import type { OutputEntry, StreamName } from '@shellfleet/protocol';

/** Returns the pieces that Redis lacks after an append without a reply. Undefined if it has none of them. */
export function unstoredOutput(
  output: readonly OutputEntry[],
  offsets: Readonly<Record<StreamName, number>>,
): OutputEntry[] | undefined {
  const unstored = output.filter(({ stream, rawFrom }) => rawFrom >= offsets[stream]);
  return unstored.length < output.length ? unstored : undefined;
}
