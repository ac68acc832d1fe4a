import type { Entry, HostMailbox } from '@shellfleet/mailbox';
import { decodeStoredChunk } from '@shellfleet/protocol';
import type { CleanOutput } from '../output/clean-output.ts';
import type { CommandLog } from '../overflow-log/overflow-logs.ts';
import type { AttachedReader } from './attached-reader.ts';

const PAGE = 200;

/**
 * Restores an adopted entry's chain from stream and log. The log counts as unread until the attached reader reports.
 */
export async function restoreOutput(
  clean: CleanOutput,
  entry: Entry,
  mailbox: Pick<HostMailbox, 'readStream'>,
  log: CommandLog,
  reader?: AttachedReader,
): Promise<void> {
  let after = `${entry.startedAt > 0 ? entry.startedAt - 1 : 0}`;
  for (;;) {
    const page = await mailbox.readStream(`(${after}`, PAGE);
    for (const { type, entryId, data } of page) {
      if (type !== 'command.output' || entryId !== entry.id) continue;
      const output = decodeStoredChunk(data);
      if (output !== undefined) clean.restoreChunk(output);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = last.id;
  }
  for await (const piece of log.restore()) {
    clean.restoreOverflow(piece);
    reader?.stored(piece.stream, piece.bytesBefore + piece.data.byteLength);
  }
}
