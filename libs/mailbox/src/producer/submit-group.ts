import { ALIVE_MS, encodeWakeUp, LIMITS, quotasKey, type SessionKeys } from '@shellfleet/protocol';
import {
  asArray,
  asNumber,
  asString,
  isCluster,
  type ScriptArgument,
  toQueueError,
  unexpected,
} from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import type { Submission, Submitted } from './submit.ts';

const script = defineMailboxScript('producer/submit');

/** Greatest age of the last heartbeat of an owner in whose name an entry is started. */
const HEARD_WITHIN_MS = 1_000;
/** A group is full at so many entries, or characters of their payloads, so that no call occupies Redis for long. */
const GROUP_ENTRIES = 32;
const GROUP_CHARS = 262_144;

/** Entries of one session that are submitted by one call, in this order. */
export class SubmitGroup {
  readonly #redis: Redis;
  readonly #keys: SessionKeys;
  readonly #generation: string;
  readonly #inbox: string;
  /** The arguments of the entries. */
  readonly #entries: ScriptArgument[] = [];
  readonly #answers: PromiseWithResolvers<Submitted>[] = [];
  #chars = 0;

  constructor(redis: Redis, keys: SessionKeys, { generation, inbox }: Submission) {
    this.#redis = redis;
    this.#keys = keys;
    this.#generation = generation;
    this.#inbox = inbox;
  }

  get isFull(): boolean {
    return this.#answers.length >= GROUP_ENTRIES || this.#chars >= GROUP_CHARS;
  }

  /** Tells whether an entry can join: all entries of a call have the same generation and inbox. */
  takes({ generation, inbox }: Submission): boolean {
    return generation === this.#generation && inbox === this.#inbox;
  }

  add(submission: Submission): Promise<Submitted> {
    this.#entries.push(
      submission.entryId,
      submission.kind,
      submission.payload,
      submission.payloadHash,
      submission.idempotencyKey ?? '',
      submission.retry,
      submission.startDeadlineMs ?? '',
      submission.input ?? '',
    );
    this.#chars += submission.payload.length;
    const answer = Promise.withResolvers<Submitted>();
    this.#answers.push(answer);
    return answer.promise;
  }

  /** Sends the entries. `onSent` is called directly after each sending. */
  send(onSent?: () => void): void {
    this.#call(onSent).then(
      (reply) => this.#answer(reply),
      (error: unknown) => {
        for (const { reject } of this.#answers) reject(error);
      },
    );
  }

  /** Calls the script at once. Every error is a rejection, because nothing catches one at the end of a turn. */
  async #call(onSent: (() => void) | undefined): Promise<unknown> {
    const keys = this.#keys;
    const isInCluster = isCluster(this.#redis);
    const args = [
      this.#generation,
      this.#inbox,
      LIMITS.queuedPerSession,
      keys.wakeUpsPrefix,
      encodeWakeUp({ type: 'session', tenant: keys.tenant, session: keys.session }),
      LIMITS.inputLeaseMs,
      LIMITS.queuedBytesPerSession,
      isInCluster ? '' : keys.hostsPrefix,
      ALIVE_MS - HEARD_WITHIN_MS,
      LIMITS.wakeUpPayloadBytes,
      isInCluster ? '' : quotasKey(keys.namespace, keys.tenant),
      ...this.#entries,
    ];
    return runOnSession(this.#redis, script, keys, args, onSent);
  }

  #answer(reply: unknown): void {
    for (const [index, { resolve, reject }] of this.#answers.entries()) {
      try {
        const answer = asArray(reply, script.name)[index];
        if (answer instanceof Error) throw toQueueError(answer);
        resolve(toSubmitted(answer));
      } catch (error) {
        reject(error);
      }
    }
  }
}

function toSubmitted(answer: unknown): Submitted {
  const reply = asArray(answer, script.name);
  switch (reply[0]) {
    case 1:
      return { type: 'accepted', waiting: asNumber(reply[1]), needsJob: reply[2] === 1 };
    case 2:
      return { type: 'accepted-before', waiting: asNumber(reply[1]), needsJob: reply[2] === 1 };
    case 3:
      return { type: 'deduplicated', entryId: asString(reply[1]) };
    case -1:
      return { type: 'closed' };
    case -2:
      return { type: 'unknown-session' };
    case -3:
      return { type: 'key-conflict', entryId: asString(reply[1]) };
    case -4:
      return { type: 'too-many', waiting: asNumber(reply[1]) };
    case -5:
      return { type: 'too-large', waiting: asNumber(reply[1]), bytes: Number(asString(reply[2])) };
    case -6:
      return {
        ...{ type: 'over-quota', quota: reply[1] === 'maxQueued' ? 'maxQueued' : 'maxDiskBytes' },
        ...{ used: asNumber(reply[2]), limit: asNumber(reply[3]) },
      };
    default:
      throw unexpected(reply, script.name);
  }
}
