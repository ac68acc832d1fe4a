import { type OutputChunk, type SessionKeys, STREAM_NAMES, type StoredChunk, toCommandId } from '@shellfleet/protocol';
import type { RequestContext } from '../hosts/request-from-host.ts';
import { parseWireResult } from '../results/read-result.ts';
import { AttachedReading, type LogPiece, type ReadOffsets } from './attached-reading.ts';
import { ChunkAssembler } from './chunk-assembler.ts';
import { followEntries } from './command-output.ts';
import type { StreamContext } from './stream-reader.ts';

// WHOLE-1. Every byte is yielded once, in the order of its stream: first bytes in the stream, then bytes on the host.
// WHOLE-2. A command whose output is within a quarter of the budget costs no additional call.
// WHOLE-3. Bytes that neither the stream nor the host has are counted where they are missing.

/** Time after which a consumer that still holds a chunk is slow, so that the host needs a heartbeat. */
const SLOW_AFTER_MS = 1_500;

export interface WholeOutputOptions {
  /** Bytes of output after which this reader, to which the command is throttled, begins to report to the host. */
  reportAfterBytes: number;
  signal?: AbortSignal | undefined;
}

/** Yields the whole output of one command, live, with the part that its session's stream does not carry. */
export async function* followWholeOutput(
  context: StreamContext & RequestContext,
  keys: SessionKeys,
  entryId: string,
  { reportAfterBytes, signal }: WholeOutputOptions,
): AsyncGenerator<OutputChunk> {
  const output = new WholeOutput();
  using reading = new AttachedReading(context, keys, entryId);
  let wake = () => {};
  const report = () => {
    reading.consumed(output.at);
    if (reportAfterBytes !== Number.POSITIVE_INFINITY) reading.start(() => wake());
  };
  const position = { after: undefined, reportsIdle: true, ...(signal && { signal }) };
  let hasEnded = false;
  let leaps: unknown;
  for await (const step of followEntries(context, keys, entryId, position)) {
    switch (step.type) {
      case 'idle':
        wake = step.wake;
        // The page may be newer than the last reading of the stream. Then the stream has more output before the page.
        if (reading.page !== undefined && reading.page !== leaps && !output.isContinuedBy(reading.page)) {
          leaps = reading.page;
          wake();
          break;
        }
        for (const piece of reading.take()) yield* whileSlow(output.addPiece(piece), report);
        if (output.at.stdout + output.at.stderr > reportAfterBytes) report();
        break;
      case 'restarted':
        output.restart();
        reading.restart();
        break;
      case 'output':
        yield* whileSlow(output.addEntry(step.id, step.entry, hasEnded), report);
        if (output.at.stdout + output.at.stderr > reportAfterBytes) report();
        break;
      case 'completed': {
        hasEnded = true;
        for (const piece of reading.take()) yield* output.addPiece(piece);
        const { hostId } = parseWireResult(step.result, toCommandId(keys.session, entryId));
        if (output.lacksPieces && hostId !== null)
          for await (const piece of reading.rest(hostId, output.at, signal)) yield* output.addPiece(piece);
        yield* output.addGaps();
        break;
      }
      case 'ended':
        yield* output.end(step.id, step.stored);
    }
  }
}

/** Yields the chunks. Reports to the host when the consumer holds a chunk for long. */
async function* whileSlow(chunks: Iterable<OutputChunk>, report: () => void): AsyncGenerator<OutputChunk> {
  for (const chunk of chunks) {
    const timer = setTimeout(report, SLOW_AFTER_MS).unref();
    try {
      yield chunk;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Joins the events of the session's stream with the pieces of the overflow log. */
class WholeOutput {
  /** Redacted bytes of each stream that were yielded, or are counted as missing. */
  readonly at: ReadOffsets = { stdout: 0, stderr: 0 };
  readonly #fromHost: ReadOffsets = { stdout: 0, stderr: 0 };
  #assembler = new ChunkAssembler();
  /** Events without data, which count bytes that the host may have. */
  #gaps: { id: string; entry: StoredChunk }[] = [];
  #lastId = '0-0';

  get lacksPieces(): boolean {
    return this.#gaps.some(({ entry }) => entry.offset > this.at[entry.stream]);
  }

  isContinuedBy(pieces: readonly LogPiece[]): boolean {
    return STREAM_NAMES.every((stream) => {
      const first = pieces.find((piece) => piece.stream === stream);
      return first === undefined || first.offset <= this.at[stream];
    });
  }

  restart(): void {
    this.#assembler.restart();
    for (const stream of STREAM_NAMES) this.at[stream] = this.#fromHost[stream] = 0;
    this.#gaps = [];
  }

  *addEntry(id: string, entry: StoredChunk, isLate: boolean): Generator<OutputChunk> {
    this.#lastId = id;
    if (entry.data.byteLength === 0 && !isLate) {
      this.#gaps.push({ id, entry });
      return;
    }
    // The host does not have these bytes: while Redis was full, only their count was stored.
    yield* this.addGaps();
    this.at[entry.stream] = Math.max(this.at[entry.stream], entry.offset + entry.data.byteLength);
    yield this.#assembler.push(id, entry);
  }

  *addPiece({ stream, offset, data }: LogPiece): Generator<OutputChunk> {
    const missing = Math.max(0, offset - this.at[stream]);
    const fresh = data.subarray(Math.max(0, this.at[stream] - offset));
    if (fresh.byteLength === 0) return;
    this.at[stream] = offset + data.byteLength;
    this.#fromHost[stream] += fresh.byteLength;
    yield this.#assembler.pushFromHost(this.#lastId, stream, fresh, missing);
  }

  /** Yields a chunk for each gap that no piece of the host has filled. */
  *addGaps(): Generator<OutputChunk> {
    for (const { id, entry } of this.#gaps.splice(0)) {
      const chunk = this.#assembler.push(id, { ...entry, omittedBytes: this.#missing(entry) });
      this.at[entry.stream] = Math.max(this.at[entry.stream], entry.offset);
      if (chunk.omittedBytes !== undefined) yield chunk;
    }
  }

  end(id: string, stored: ReadOffsets): OutputChunk[] {
    return this.#assembler.end(id, stored);
  }

  #missing({ stream, offset, omittedBytes, blocked }: StoredChunk): number {
    const missing = Math.max(0, offset - this.at[stream]);
    // Withheld bytes have no offset. Only their raw size is known.
    const isWithheld = blocked !== undefined || this.#assembler.isBlocked;
    return isWithheld ? Math.max(missing, omittedBytes - this.#fromHost[stream]) : missing;
  }
}
