import { type ApprovalEnd, type ApprovalKeys, confirmedKey, encodeWakeUp, fleetKeys } from '@shellfleet/protocol';
import { asArray, asNumber, retentionOf, runScript, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';

// Answers wait in their own stream until a worker has applied them. Approvers write only to that key.

const script = defineApprovalsScript('apply');

/** Denials in a row after which a session may ask again at once. After each further denial it has to wait. */
const DENIALS_WITHOUT_PAUSE = 3;
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 600_000;
const ASKERS_OF_ONE_CALL = 500;
const PAGE = 100;
const CONFIRMED_MS = 10_000;

/** Adds an answer, and returns its id in the stream. The caller wakes the hosts next. Throws QUEUE_UNAVAILABLE. */
export async function writeAnswer(redis: Redis, keys: ApprovalKeys, sealed: string): Promise<string> {
  return (await redis.xadd(keys.answers, '*', 'd', sealed).catch(throwQueueError)) ?? '';
}

/** Wakes the hosts for the waiting answers. Each host confirms the answer with the id `confirm`. */
export async function wakeForAnswers(redis: Redis, keys: ApprovalKeys, confirm?: string): Promise<void> {
  const { namespace, tenant } = keys;
  const wakeUp = encodeWakeUp({ type: 'answers', tenant, ...(confirm === undefined ? {} : { confirm }) });
  await redis.publish(fleetKeys(namespace).sessionsWakeUps, wakeUp).catch(throwQueueError);
}

/** Returns true while an answer waits. Throws QUEUE_UNAVAILABLE. */
export async function isAnswerWaiting(redis: Redis, keys: ApprovalKeys, id: string): Promise<boolean> {
  return (await redis.xrange(keys.answers, id, id).catch(throwQueueError)).length > 0;
}

/** Reads the waiting answers, oldest first. Throws QUEUE_UNAVAILABLE. */
export async function readAnswers(redis: Redis, keys: ApprovalKeys): Promise<{ id: string; sealed: string }[]> {
  const entries = await redis.xrange(keys.answers, '-', '+', 'COUNT', PAGE).catch(throwQueueError);
  return entries.map(([id, fields]) => ({ id, sealed: fields[1] ?? '' }));
}

/** Removes an answer without applying it. */
export async function dropAnswer(redis: Redis, keys: ApprovalKeys, id: string): Promise<void> {
  await redis.xdel(keys.answers, id).catch(throwQueueError);
}

export interface AppliedAnswer {
  /** Id of the answer in the stream. */
  id: string;
  question: string;
  type: 'approve' | 'deny' | 'revoke';
  scope?: string | undefined;
  /** Sealed grant of an approval. */
  grant?: string;
  /** True if a grant of the scope `session` covers a directory of the session. */
  covers?: boolean;
  end: ApprovalEnd;
}

/** Applies an answer and removes it (APPROVALS-3). `over`: the question has ended before. Throws QUEUE_UNAVAILABLE. */
export async function applyAnswer(
  redis: Redis,
  keys: ApprovalKeys,
  answer: AppliedAnswer,
): Promise<{ type: 'applied' | 'applied-before' | 'over' }> {
  const { id, question, type, scope = '', grant = '', covers = false, end } = answer;
  const args = [keys.prefix, id, question, type, scope, grant, JSON.stringify(end), retentionOf(redis, keys.namespace)];
  const limits = [ASKERS_OF_ONE_CALL, DENIALS_WITHOUT_PAUSE, FIRST_PAUSE_MS, LONGEST_PAUSE_MS, covers ? '1' : ''];
  for (;;) {
    const reply = asArray(await runScript(redis, script, [keys.questions], [...args, ...limits]), script.name);
    const code = asNumber(reply[0]);
    if (code === 2) continue; // ends when nobody asks the question any more
    return { type: code === 1 ? 'applied' : code === 0 ? 'applied-before' : 'over' };
  }
}

/** Confirms that this host starts nothing more on grants that this answer or an earlier one has revoked. */
export async function confirmAnswer(redis: Redis, keys: ApprovalKeys, answer: string, hostId: string): Promise<void> {
  const key = confirmedKey(keys, answer);
  await redis
    .multi()
    .sadd(key, hostId)
    .pexpire(key, CONFIRMED_MS)
    .publish(keys.feed, answer)
    .exec()
    .catch(throwQueueError);
}

/** Reads the ids of the hosts that have confirmed an answer. Throws QUEUE_UNAVAILABLE. */
export async function readConfirmed(redis: Redis, keys: ApprovalKeys, answer: string): Promise<string[]> {
  return redis.smembers(confirmedKey(keys, answer)).catch(throwQueueError);
}
