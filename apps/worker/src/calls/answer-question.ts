import { sendAnswer, storeAnswer } from '@shellfleet/mailbox';
import { type AskCall, ensureShellfleetError, type SealedAnswer, sessionKeys } from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import type { HostServices } from '../run/host-services.ts';

/** Longest reply that is stored in the inbox. A larger one gets its own key. */
const INLINE_CHARS = 16_384;

/** Replies to the inbox of the requesting process with the result of `find`, or with the error that it throws. */
export async function answerQuestion(
  call: AskCall,
  { redis, namespace, sealer }: HostServices,
  find: (call: AskCall) => Promise<unknown>,
): Promise<void> {
  const answer: SealedAnswer = await find(call).then(
    (value) => ({ type: 'answer', value }),
    (error: unknown) => ({ type: 'refusal', error: ensureShellfleetError(error).toJSON() }),
  );
  const { tenant, session, id, inbox } = call;
  const keys = sessionKeys(namespace, tenant, session);
  const sealed = sealer.seal(JSON.stringify(answer), sealPlace('answer', keys, id));
  const isLarge = sealed.length > INLINE_CHARS;
  if (isLarge) await storeAnswer(redis, keys, id, sealed);
  await sendAnswer(redis, namespace, inbox, { id, sealed: isLarge ? '' : sealed });
}
