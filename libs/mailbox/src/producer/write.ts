import { encodeWakeUp, LIMITS, type SessionKeys } from '@shellfleet/protocol';
import { asArray, asNumber, unexpected } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('producer/write');

/** Call of one writer to the open stdin of an entry. */
export interface InputWrite {
  writer: string;
  /** Number of the call, which rises. A call with a number up to the last stored number counts as a repetition. */
  number: number;
  /** Sealed chunks, with at least one plain byte each. Without any, the call closes the stdin or renews the lease. */
  chunks?: readonly { sealed: string; bytes: number }[];
  /** Close of the stdin. After `broken` the command is stopped. */
  closes?: 'end' | 'broken';
  signed?: string;
  /**
   * Offset at which the write must begin, else it is `misplaced`. A streaming submitter detects lost data by it; other
   * writers may give it at a close.
   */
  offset?: number;
  /** Lease of a streaming submitter, which counts as gone without another call within this time. */
  leaseMs?: number;
}

export type InputWritten =
  | { type: 'written'; offset: number }
  /** There is no room. The session's feed reports when there is. */
  | { type: 'full' }
  | { type: 'ended' }
  | { type: 'closed' }
  | { type: 'misplaced'; offset: number }
  | { type: 'not-open' }
  | { type: 'unknown' };

/** Adds all chunks to the open stdin of an entry, or none, once, and wakes its host. */
export async function writeInput(
  redis: Redis,
  keys: SessionKeys,
  entryId: string,
  { writer, number, chunks = [], closes, signed, offset, leaseMs }: InputWrite,
): Promise<InputWritten> {
  const reply = asArray(
    await runOnSession(redis, script, keys, [
      entryId,
      writer,
      number,
      closes ?? '',
      offset ?? '',
      leaseMs ?? '',
      LIMITS.inputUnreadBytes,
      LIMITS.inputUnreadChunks,
      keys.wakeUpsPrefix,
      encodeWakeUp({ type: 'input', tenant: keys.tenant, session: keys.session }),
      signed ?? '',
      ...chunks.flatMap(({ bytes, sealed }) => [bytes, sealed]),
    ]),
    script.name,
  );
  switch (reply[0]) {
    case 1:
      return { type: 'written', offset: asNumber(reply[1]) };
    case 0:
      return { type: 'full' };
    case -1:
      return { type: 'unknown' };
    case -2:
      return { type: 'ended' };
    case -3:
      return { type: 'not-open' };
    case -4:
      return { type: 'closed' };
    case -5:
      return { type: 'misplaced', offset: asNumber(reply[1]) };
    default:
      throw unexpected(reply, script.name);
  }
}
