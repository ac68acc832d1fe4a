import { encodeWakeUp, LIMITS, type SessionKeys } from '@shellfleet/protocol';
import { asArray, asNumber, unexpected } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('producer/write');

/** One call of one writer on the open stdin of an entry. */
export interface InputWrite {
  writer: string;
  /** Rises with every call of the writer, which makes its calls one after another: a number up to the last one counts as a repetition. */
  number: number;
  /** Sealed chunks. `bytes`: size before sealing, at least one. A call without chunks only closes the stdin, or renews the lease. */
  chunks?: readonly { sealed: string; bytes: number }[];
  /** `broken`: the rest of the stdin will never arrive, and the command is stopped. */
  closes?: 'end' | 'broken';
  /** How it closes, as its producer signed it. */
  signed?: string;
  /**
   * The offset at which the write must begin, else it is refused. A streaming submitter detects thereby that Redis has lost data. Other writers
   * may give one only when they close it.
   */
  offset?: number;
  /** Lease of a streaming submitter: it counts as gone when it does not call again within this time. */
  leaseMs?: number;
}

export type InputWritten =
  | { type: 'written'; offset: number }
  /** Not stored: no room. The session's feed reports when there is room again. */
  | { type: 'full' }
  | { type: 'ended' }
  | { type: 'closed' }
  | { type: 'misplaced'; offset: number }
  /** It was submitted without an open stdin. */
  | { type: 'not-open' }
  | { type: 'unknown' };

/** Adds to the open stdin of an entry, all of the chunks or none, once, and wakes its host. */
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
