import { type Sealer, sealPlace, sendAnswer } from '@shellfleet/mailbox';
import { type AskCall, ensureShellfleetError, type SealedAnswer } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

interface AnswerDeps {
  redis: Redis;
  namespace: string;
  sealer: Sealer;
  /** What the host knows; what it throws is told to the asker. */
  find(call: AskCall): Promise<unknown>;
}

/** Answers one question about a session of this host, into the inbox of whoever asks. */
export async function answerQuestion(call: AskCall, { redis, namespace, sealer, find }: AnswerDeps): Promise<void> {
  const answer: SealedAnswer = await find(call).then(
    (value) => ({ type: 'answer', value }),
    (error: unknown) => ({ type: 'refusal', error: ensureShellfleetError(error).toJSON() }),
  );
  const { tenant, session, id, inbox } = call;
  const sealed = sealer.seal(JSON.stringify(answer), sealPlace('answer', { namespace, tenant, session }, id));
  await sendAnswer(redis, namespace, inbox, { id, sealed });
}
