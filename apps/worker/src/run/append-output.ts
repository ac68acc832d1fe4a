import type { Appended, Fenced, OwnedCalls } from '@shellfleet/mailbox';
import type { OutputEntry } from '@shellfleet/protocol';
import { isRedisFull } from '@shellfleet/redis';

/**
 * How long output waits for room in a full Redis. The commands that hold it up may be those whose end would make room.
 */
const WAIT_FOR_ROOM_MS = 5_000;

/**
 * Returns calls that append output of one entry, for `retry` of the mailbox. When a full Redis has refused output for
 * some seconds, only the size of that output is stored, which a full Redis accepts: the command goes on, and the
 * missing output is counted.
 */
export function createAppend(
  entryId: string,
  clock: () => number = () => performance.now(),
): (entries: readonly OutputEntry[]) => (once: Pick<OwnedCalls, 'append'>) => Promise<Appended | Fenced> {
  let fullSince: number | undefined;
  return (entries) => async (once) => {
    try {
      const appended = await once.append(entryId, entries);
      fullSince = undefined;
      return appended;
    } catch (error) {
      if (!isRedisFull(error)) throw error;
      fullSince ??= clock();
      if (clock() - fullSince < WAIT_FOR_ROOM_MS) throw error;
      return once.append(entryId, entries.map(toGap), { whenFull: true });
    }
  };
}

function toGap(entry: OutputEntry): OutputEntry {
  return { ...entry, omittedBytes: entry.rawTo - entry.rawFrom, data: new Uint8Array(0) };
}
