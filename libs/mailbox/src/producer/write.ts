import { encodeWakeUp, LIMITS, type SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { asArray, asNumber, unexpected } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';

const script = defineMailboxScript('producer/write');

/** One call of one writer on the open stdin of an entry. */
export interface InputWrite {
  writer: string;
  /** Rises over all calls of the writer, so it makes them one after another: a call behind a later one counts as made. */
  number: number;
  /** Each sealed; `bytes` of it in clear, at least one. Without any the call only closes, or renews. */
  chunks?: readonly { sealed: string; bytes: number }[];
  /** `broken`: what was to follow never comes, and the command is stopped. */
  closes?: 'end' | 'broken';
  /** Refused anywhere else: who streams alone notices what Redis has lost. */
  offset?: number;
  /** Who streams is gone when it does not call again within this. */
  leaseMs?: number;
}

export type InputWritten =
  | { type: 'written'; offset: number }
  /** Not stored: the session's feed says when some of it was read. */
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
  { writer, number, chunks = [], closes, offset, leaseMs }: InputWrite,
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
