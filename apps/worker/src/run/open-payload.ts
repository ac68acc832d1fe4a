import type { Entry } from '@shellfleet/mailbox';
import {
  type Caller,
  carriedTraceSchema,
  type EntryPayload,
  entryPayloadSchema,
  parseOrThrow,
  submittedSchema,
  type TraceContext,
} from '@shellfleet/protocol';
import { type Signature, sealPlace } from '@shellfleet/sealing';
import type { SessionContext } from './session-context.ts';

interface OpenedPayload {
  payload: EntryPayload;
  /** Signature of the submitter, where keys are configured. */
  signature: Signature | undefined;
  /** Span of the submit. It is sealed beside the payload, so answers and idempotency keys do not depend on it. */
  trace: TraceContext | undefined;
  /** Caller that submitted it, if its client named one. */
  submittedBy: Caller | undefined;
}

/** Opens the sealed payload of an entry. Throws SEAL_KEY_UNKNOWN, UNAUTHORIZED, or INTERNAL if it is no payload. */
export function openPayload(
  entry: Entry,
  { owner, generation, spec, sealer }: Pick<SessionContext, 'owner' | 'generation' | 'spec' | 'sealer'>,
): OpenedPayload {
  const { id, retry, inbox } = entry;
  const place = sealPlace('payload', owner.keys, { id, generation, retry, inbox, spec });
  const { plain, signature } = sealer.openSigned(entry.payload, place);
  const name = `The payload of ${owner.keys.session}.${id}`;
  const stored = JSON.parse(plain);
  const payload = parseOrThrow(entryPayloadSchema, stored, 'INTERNAL', name);
  const trace = stored.trace === undefined ? undefined : carriedTraceSchema.parse(stored.trace);
  const { submittedBy } =
    stored.submittedBy === undefined ? {} : parseOrThrow(submittedSchema, stored, 'INTERNAL', name);
  return { payload, signature, trace, submittedBy };
}

/** Returns the span that submitted an entry, if it is known. An entry that has ended has no payload. */
export function traceOf(
  entry: Entry,
  context: Pick<SessionContext, 'owner' | 'generation' | 'spec' | 'sealer'>,
): TraceContext | undefined {
  try {
    return openPayload(entry, context).trace;
  } catch {
    return undefined;
  }
}
