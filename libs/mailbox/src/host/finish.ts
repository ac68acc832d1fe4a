import { inboxKey, LIMITS, type OutputEntry, toWireResult, type WireResult } from '@shellfleet/protocol';
import { type Taken, toTaken } from '../entry.ts';
import { INBOX_LENGTH, INLINE_RESULT_CHARS } from '../inbox.ts';
import { asArray, asNumber, asString } from '../reply.ts';
import { defineMailboxScript, runScript } from '../script.ts';
import { toOutputArguments } from './output-arguments.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/finish');

export interface FinishOptions {
  result: WireResult;
  /** shells that the session has had */
  epoch: number;
  /** start the next entry in the same step */
  takeNext: boolean;
  /** output not yet appended */
  output?: readonly OutputEntry[];
  /** of a file operation, sealed */
  answer?: string;
  /**
   * Whom to tell, in the same step: behind the fence, and a round trip sooner than notify() could. In a Cluster the inbox is on another
   * slot: leave it out there, and notify() afterwards. An entry that had ended before is told to nobody.
   */
  inbox?: string;
}

export type Finished =
  /**
   * `event` is the id of the terminal event in the stream. `endedBefore`: an earlier arrival of this call, a cancel() or a start deadline
   * was first, so the Result that counts is the one in the stream.
   */
  | { type: 'finished'; event: string; next: Taken; endedBefore: boolean }
  /** A caller's cancel() was first: finish it as a cancellation. */
  | { type: 'cancelled' }
  | { type: 'misplaced'; offsets: { stdout: number; stderr: number } }
  /** It is neither running nor the head: it ended another way. */
  | { type: 'not-running' };

/** The only way an entry that a host holds becomes terminal. Twice: what the first call answered. */
export async function finish(owner: Owner, entryId: string, options: FinishOptions): Promise<Finished | Fenced> {
  const { keys, redis } = owner;
  const result = JSON.stringify(toWireResult(options.result));
  const inbox = options.inbox ? [inboxKey(keys.namespace, options.inbox)] : [];
  const reply = asArray(
    await runScript(
      redis,
      script,
      [keys.queue, keys.state, keys.stream, ...inbox],
      [
        keys.prefix,
        keys.feed,
        owner.fence,
        owner.host,
        entryId,
        options.result.outcome,
        result,
        options.epoch,
        options.takeNext ? '1' : '0',
        LIMITS.retentionMs,
        options.answer ?? '',
        INBOX_LENGTH,
        result.length <= INLINE_RESULT_CHARS ? '1' : '0',
        ...toOutputArguments(options.output ?? []),
      ],
    ),
    script.name,
  );
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -4) return { type: 'cancelled' };
  if (reply[0] === -5)
    return { type: 'misplaced', offsets: { stdout: asNumber(reply[1]), stderr: asNumber(reply[2]) } };
  if (typeof reply[0] === 'number') return { type: 'not-running' };
  const next = toTaken(asArray(reply[1], script.name));
  return { type: 'finished', event: asString(reply[0]), next, endedBefore: reply[2] === 1 };
}
