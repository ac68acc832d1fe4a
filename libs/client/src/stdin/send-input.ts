import { type InputWrite, type InputWritten, writeInput } from '@shellfleet/mailbox';
import { isShellfleetError, LIMITS, type SessionKeys, ShellfleetError, toCommandId } from '@shellfleet/protocol';
import { type Sealer, sealPlace, signInputEnd } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Feeds, Wake } from '../connection/feeds.ts';
import { resultExpired } from '../results/read-result.ts';

export interface InputContext {
  /** Id of the writer. Its calls have rising numbers. */
  readonly id: string;
  readonly redis: Redis;
  readonly sealer: Sealer;
  readonly feeds: Feeds;
  nextInputNumber(): number;
}

const NOTHING = new Uint8Array(0);

/** The entry that a call writes to, and how long it waits. */
export interface InputPlace {
  context: InputContext;
  keys: SessionKeys;
  entryId: string;
  signal?: AbortSignal | undefined;
  /** Time in ms for which the call is retried while Redis is down. */
  retryMs: number;
}

/** One call, whose data is at most LIMITS.inputWriteBytes long. */
export type InputCall = Omit<InputWrite, 'writer' | 'number' | 'chunks' | 'signed'> & { bytes?: Uint8Array };

/**
 * Makes one call on an open stdin, and retries it under the same number until it is stored. Calls on one entry take
 * turns.
 */
export async function sendInput(place: InputPlace, call: InputCall): Promise<Exclude<InputWritten, { type: 'full' }>> {
  const { context, keys, entryId, signal } = place;
  const { bytes = NOTHING, ...rest } = call;
  const seal = (plain: Uint8Array) => ({
    sealed: context.sealer.seal(plain, sealPlace('input', keys, entryId)),
    bytes: plain.byteLength,
  });
  const { closes, offset = 0 } = rest;
  const end = closes && { closes, bytes: offset + bytes.byteLength };
  const write: InputWrite = {
    ...rest,
    ...(end === undefined ? {} : { signed: signInputEnd(context.sealer, keys, entryId, end) }),
    writer: context.id,
    number: context.nextInputNumber(),
    chunks: [...toPieces(bytes, LIMITS.inputChunkBytes)].map(seal),
  };
  const giveUpAt = performance.now() + place.retryMs;
  let wake: Wake | undefined;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const written = await writeInput(context.redis, keys, entryId, write).catch((error: unknown) => {
        if (!isShellfleetError(error) || error.code !== 'QUEUE_UNAVAILABLE' || performance.now() > giveUpAt)
          throw error;
        // A full Redis accepts no chunk. A call without chunks still renews the submitter's lease.
        const { writer, number, offset, leaseMs } = write;
        if (offset !== undefined && leaseMs !== undefined)
          void writeInput(context.redis, keys, entryId, { writer, number, offset, leaseMs }).catch(() => {});
        return { type: 'full' } as const;
      });
      if (written.type !== 'full') return written;
      // The first time, the call is repeated right after the subscription, because room may have become free before it.
      if (wake === undefined) wake = await context.feeds.follow(keys.feed);
      else await wake.next(signal);
    }
  } finally {
    wake?.[Symbol.dispose]();
  }
}

export function toWrites(data: string | Uint8Array): Generator<Uint8Array> {
  return toPieces(typeof data === 'string' ? Buffer.from(data) : data, LIMITS.inputWriteBytes);
}

function* toPieces(bytes: Uint8Array, most: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += most) yield bytes.subarray(at, at + most);
}

export function toInputError(
  written: Exclude<InputWritten, { type: 'full' | 'written' }>,
  keys: SessionKeys,
  entryId: string,
): ShellfleetError {
  const commandId = toCommandId(keys.session, entryId);
  if (written.type === 'unknown') return resultExpired(commandId);
  const message = {
    ended: `Command ${commandId} has ended, so nothing reads its stdin any more.`,
    closed: `The stdin of command ${commandId} was closed before, so nothing can be written after its end.`,
    'not-open': `The stdin of command ${commandId} is not open for writing. Submit it with { stdin: { open: true } }.`,
    misplaced: `Redis has lost a part of the stdin of command ${commandId}.`,
  }[written.type];
  return new ShellfleetError('COMMAND_INVALID', message, { commandId, stdin: written.type });
}
