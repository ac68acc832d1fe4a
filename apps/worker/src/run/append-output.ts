import type { Appended, Fenced, OwnedCalls } from '@shellfleet/mailbox';
import type { OutputEntry } from '@shellfleet/protocol';
import { isRedisFull } from '@shellfleet/redis';

/** Time that output waits for room in a full Redis. The blocked commands may be those whose end would make room. */
const WAIT_FOR_ROOM_MS = 5_000;

/** Returns calls that append output of one entry. If Redis stays full, they store only its size, as omitted. */
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
