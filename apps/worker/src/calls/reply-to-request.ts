import { sendReply, storeReply } from '@shellfleet/mailbox';
import {
  ensureShellfleetError,
  type OperatorRequestCall,
  type RequestCall,
  type SealedReply,
  sessionKeys,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import type { HostServices } from '../run/host-services.ts';

/** Longest reply that is stored in the inbox. A larger one gets its own key. */
const INLINE_CHARS = 16_384;

/** Replies to the inbox of the requesting process with the result of `find`, or with the error that it throws. */
export async function replyToRequest(
  call: RequestCall | OperatorRequestCall,
  { redis, namespace, sealer }: HostServices,
  find: () => Promise<unknown>,
): Promise<void> {
  const reply: SealedReply = await find().then(
    (value) => ({ type: 'reply', value }),
    (error: unknown) => ({ type: 'refusal', error: ensureShellfleetError(error).toJSON() }),
  );
  const { tenant, session, id } = call;
  const keys = sessionKeys(namespace, tenant, session);
  const sealed = sealer.seal(JSON.stringify(reply), sealPlace('reply', keys, id));
  const isLarge = sealed.length > INLINE_CHARS;
  if (isLarge) await storeReply(redis, keys, id, sealed);
  await sendReply(redis, namespace, call, { id, sealed: isLarge ? '' : sealed });
}
