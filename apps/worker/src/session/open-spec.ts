import type { Adopted } from '@shellfleet/mailbox';
import {
  ensureShellfleetError,
  parseOrThrow,
  type ResolvedSessionSpec,
  type SessionKeys,
  type ShellfleetError,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';

/** Opens a session's sealed spec, or returns PROTOCOL_MISMATCH, SEAL_KEY_UNKNOWN or SESSION_SPEC_INVALID. */
export function tryOpenSpec(
  { spec, generation }: Pick<Adopted, 'spec' | 'generation'>,
  keys: SessionKeys,
  sealer: Sealer,
): ResolvedSessionSpec | ShellfleetError {
  try {
    const plain = sealer.open(spec, sealPlace('spec', keys, { generation }));
    const what = `The spec of session ${keys.session}`;
    return parseOrThrow(sessionSpecSchema, JSON.parse(plain), 'SESSION_SPEC_INVALID', what);
  } catch (error) {
    return ensureShellfleetError(error);
  }
}
