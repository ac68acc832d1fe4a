import { type Sealer, sealPlace, sendAnswer } from '@shellfleet/mailbox';
import { type AskCall, ensureShellfleetError, type SealedAnswer } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

interface AnswerDeps {
  redis: Redis;
  namespace: string;
  sealer: Sealer;
  /** Finds the answer. An error that it throws is sent as the answer. */
  find(call: AskCall): Promise<unknown>;
}

/** Answers one question about a session of this host: sends the sealed answer to the inbox of the process that asked. */
export async function answerQuestion(call: AskCall, { redis, namespace, sealer, find }: AnswerDeps): Promise<void> {
  const answer: SealedAnswer = await find(call).then(
    (value) => ({ type: 'answer', value }),
    (error: unknown) => ({ type: 'refusal', error: ensureShellfleetError(error).toJSON() }),
  );
  const { tenant, session, id, inbox } = call;
  const sealed = sealer.seal(JSON.stringify(answer), sealPlace('answer', { namespace, tenant, session }, id));
  await sendAnswer(redis, namespace, inbox, { id, sealed });
}
