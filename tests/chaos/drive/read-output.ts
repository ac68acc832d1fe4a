import { setTimeout as delay } from 'node:timers/promises';
import { type Command, isShellfleetError, type OutputChunk } from '@shellfleet/client';
import type { ReaderKind, SeenOutput } from '../history/history.ts';
import { describe } from '../plan/operations.ts';

type Streams = Record<OutputChunk['stream'], { pieces: Uint8Array[]; omittedBytes: number }>;

/**
 * Reads the whole streamed output of a command, without the first line of stdout. Undefined for a reader that reads
 * nothing.
 */
export async function readOutput(
  command: Command,
  reader: ReaderKind,
  random: () => number,
): Promise<{ stdout: SeenOutput; stderr: SeenOutput } | undefined> {
  if (reader === 'absent') return undefined;
  if (reader === 'late') await command.result();
  const streams: Streams = {
    stdout: { pieces: [], omittedBytes: 0 },
    stderr: { pieces: [], omittedBytes: 0 },
  };
  let after: string | undefined;
  for (let ended = false; !ended; ) {
    ended = true;
    try {
      for await (const chunk of command.output(after === undefined ? {} : { after })) {
        const stream = streams[chunk.stream];
        stream.pieces.push(chunk.data);
        stream.omittedBytes += chunk.omittedBytes ?? 0;
        after = chunk.id;
        if (reader === 'slow') await delay(20);
        if (reader !== 'leaving' || random() < 0.7) continue;
        ended = false;
        break;
      }
    } catch (error) {
      if (!isShellfleetError(error) || !error.retryable) throw error;
      ended = false;
    }
    if (!ended) await delay(50);
  }
  const stdout = Buffer.concat(streams.stdout.pieces);
  return {
    stdout: { ...describe(stdout.subarray(stdout.indexOf(10) + 1)), omittedBytes: streams.stdout.omittedBytes },
    stderr: { ...describe(Buffer.concat(streams.stderr.pieces)), omittedBytes: streams.stderr.omittedBytes },
  };
}
