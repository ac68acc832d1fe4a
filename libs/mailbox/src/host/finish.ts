import { encodeWireResult, inboxChannel, type StoredChunk, type WireResult } from '@shellfleet/protocol';
import { asArray, asNumber, asString, retentionOf } from '@shellfleet/redis';
import { INLINE_RESULT_BYTES } from '../producer/inbox.ts';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { toOutputArguments } from './append.ts';
import { type Taken, toTaken } from './entry.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/finish');

export interface FinishOptions {
  result: WireResult;
  epoch: number;
  takeNext: boolean;
  /** Reason of a cancellation as its caller gave it, before redaction. */
  cancelReason?: string;
  output?: readonly StoredChunk[];
  answer?: string;
  /** Inbox to notify in the same step, without a round trip of notify(). Not notified if the entry had ended before. */
  inbox?: string;
}

export type Finished =
  /** With `endedBefore` another call ended the entry first, and the valid Result is in the stream. */
  | { type: 'finished'; event: string; next: Taken; endedBefore: boolean }
  /** A caller cancelled the entry. Finish it as a cancellation with this reason. */
  | { type: 'cancelled'; reason: string }
  | { type: 'misplaced'; offsets: { stdout: number; stderr: number } }
  | { type: 'not-running' };

/** Ends the running entry, or the unstarted head, once (MAILBOX-3). A second arrival gets the event of the first. */
export async function finish(owner: Owner, entryId: string, options: FinishOptions): Promise<Finished | Fenced> {
  const { keys, redis } = owner;
  const result = encodeWireResult(options.result);
  const reply = asArray(
    await runOnSession(redis, script, keys, [
      owner.fence,
      owner.host,
      entryId,
      options.result.outcome,
      result,
      options.epoch,
      options.takeNext ? (owner.boot ?? '-') : '',
      retentionOf(redis, keys.namespace),
      options.answer ?? '',
      options.inbox ? inboxChannel(keys.namespace, keys.tenant, options.inbox) : '',
      INLINE_RESULT_BYTES,
      owner.admission ?? '',
      options.cancelReason ?? '',
      keys.member,
      ...toOutputArguments(options.output ?? []),
    ]),
    script.name,
  );
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -4) return { type: 'cancelled', reason: asString(reply[1]) };
  if (reply[0] === -5)
    return { type: 'misplaced', offsets: { stdout: asNumber(reply[1]), stderr: asNumber(reply[2]) } };
  if (typeof reply[0] === 'number') return { type: 'not-running' };
  const [event, next, endedBefore] = reply;
  return {
    type: 'finished',
    event: asString(event),
    next: toTaken(asArray(next, script.name)),
    endedBefore: endedBefore === 1,
  };
}
