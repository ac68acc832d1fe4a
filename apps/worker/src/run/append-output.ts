import { type Appended, append, type Fenced, isRedisFull, type Owner } from '@shellfleet/mailbox';
import type { OutputEntry } from '@shellfleet/protocol';

/** How long output waits for room in a full Redis. The commands that hold it up may be those whose end would make room. */
const WAIT_FOR_ROOM_MS = 5_000;

/**
 * Appends output of one entry. Of the output that a full Redis has refused for some seconds, the stream carries only the size, which a full
 * Redis accepts: the command goes on, and what is missing is counted. The calls that are returned are repeated until one succeeds.
 */
export function createAppend(
  owner: Owner,
  entryId: string,
  clock: () => number = () => performance.now(),
): (entries: readonly OutputEntry[]) => () => Promise<Appended | Fenced> {
  let fullSince: number | undefined;
  return (entries) => async () => {
    try {
      const appended = await append(owner, entryId, entries);
      fullSince = undefined;
      return appended;
    } catch (error) {
      if (!isRedisFull(error)) throw error;
      fullSince ??= clock();
      if (clock() - fullSince < WAIT_FOR_ROOM_MS) throw error;
      return append(owner, entryId, entries.map(toGap), { whenFull: true });
    }
  };
}

function toGap(entry: OutputEntry): OutputEntry {
  return { ...entry, omittedBytes: entry.rawTo - entry.rawFrom, data: new Uint8Array(0) };
}
