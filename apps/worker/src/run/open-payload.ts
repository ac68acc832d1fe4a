import type { Entry } from '@shellfleet/mailbox';
import { type EntryPayload, entryPayloadSchema, parseOrThrow } from '@shellfleet/protocol';
import { type Signature, sealPlace } from '@shellfleet/sealing';
import type { SessionContext } from './session-context.ts';

/** Opens the sealed payload of an entry. Throws SEAL_KEY_UNKNOWN, UNAUTHORIZED, or INTERNAL if it is no payload. */
export function openPayload(entry: Entry, context: SessionContext): EntryPayload {
  return openSignedPayload(entry, context).payload;
}

/** Opens the payload with its signature, where keys are configured. */
export function openSignedPayload(
  entry: Entry,
  { owner, generation, spec, sealer }: SessionContext,
): { payload: EntryPayload; signature: Signature | undefined } {
  const { id, retry, inbox } = entry;
  const place = sealPlace('payload', owner.keys, { id, generation, retry, inbox, spec });
  const { plain, signature } = sealer.openSigned(entry.payload, place);
  const name = `The payload of ${owner.keys.session}.${id}`;
  return { payload: parseOrThrow(entryPayloadSchema, JSON.parse(plain), 'INTERNAL', name), signature };
}
