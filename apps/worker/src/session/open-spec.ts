import { type Sealer, sealPlace } from '@shellfleet/mailbox';
import { parseOrThrow, type ResolvedSessionSpec, type SessionKeys, sessionSpecSchema } from '@shellfleet/protocol';

/** A session's spec as its producer sealed it. Throws SEAL_KEY_UNKNOWN, SESSION_SPEC_INVALID. */
export function openSpec(sealed: string, keys: SessionKeys, sealer: Sealer): ResolvedSessionSpec {
  const plain = sealer.open(sealed, sealPlace('spec', keys));
  return parseOrThrow(
    sessionSpecSchema,
    JSON.parse(plain),
    'SESSION_SPEC_INVALID',
    `The spec of session ${keys.session}`,
  );
}
