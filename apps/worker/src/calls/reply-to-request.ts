import { sendReply, storeReply } from '@shellfleet/mailbox';
import {
  ensureShellfleetError,
  type LogPage,
  type OperatorRequestCall,
  type RequestCall,
  type SealedReply,
  sessionKeys,
  toLogReply,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import { freeBytes } from '../output/free-bytes.ts';
import type { HostServices } from '../run/host-services.ts';

/** Longest reply that is sealed in the message to the inbox. A larger one, or one with data, gets its own key. */
const INLINE_BYTES = 12_288;

/** Replies to the inbox of the requesting process with the result of `find`, or with the error that it throws. */
export async function replyToRequest(
  call: RequestCall | OperatorRequestCall,
  { redis, namespace, sealer }: HostServices,
  find: () => Promise<unknown>,
): Promise<void> {
  const { reply, data } = await find().then(
    (found) => (call.request.type === 'log' ? withData(found as LogPage) : { reply: toReply(found), data: [] }),
    (error: unknown) => ({ reply: toRefusal(error), data: [] }),
  );
  const { tenant, session, id } = call;
  const keys = sessionKeys(namespace, tenant, session);
  const place = sealPlace('reply', keys, id);
  const json = Buffer.from(JSON.stringify(reply));
  const isInline = data.length === 0 && json.byteLength <= INLINE_BYTES;
  if (!isInline) {
    const sealed = sealer.sealRaw([json, LINE_FEED, ...data], place);
    for (const bytes of data) freeBytes(bytes);
    await storeReply(redis, keys, id, sealed);
    freeBytes(sealed);
  }
  await sendReply(redis, namespace, call, { id, sealed: isInline ? sealer.seal(json, place) : '' });
}

const LINE_FEED = Buffer.from('\n');
const toReply = (value: unknown): SealedReply => ({ type: 'reply', value });
const toRefusal = (error: unknown): SealedReply => ({ type: 'refusal', error: ensureShellfleetError(error).toJSON() });

function withData(page: LogPage): { reply: SealedReply; data: Uint8Array[] } {
  const { reply, data } = toLogReply(page);
  return { reply: toReply(reply), data };
}
