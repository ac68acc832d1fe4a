import { type Entry, sealPlace } from '@shellfleet/mailbox';
import { type EntryPayload, entryPayloadSchema, parseOrThrow } from '@shellfleet/protocol';
import type { SessionContext } from './session-context.ts';

/** Opens the sealed payload of an entry. Throws SEAL_KEY_UNKNOWN, and INTERNAL when it is not a payload. */
export function openPayload(entry: Entry, { owner, generation, sealer }: SessionContext): EntryPayload {
  const { id, retry, inbox } = entry;
  const plain = sealer.open(entry.payload, sealPlace('payload', owner.keys, { id, generation, retry, inbox }));
  const name = `The payload of ${owner.keys.session}.${entry.id}`;
  return parseOrThrow(entryPayloadSchema, JSON.parse(plain), 'INTERNAL', name);
}
