import { hashIdempotencyKey, type Submission } from '@shellfleet/mailbox';
import { type EntryPayload, toCanonicalJson } from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { OpenSession } from './open-session.ts';

/** The options of a submit, besides the payload. */
export interface SendOptions {
  idempotencyKey?: string;
  durable?: boolean;
  retry?: 'never' | 'idempotent';
  startDeadlineMs?: number;
}

/** An entry in the form that the mailbox stores: its payload is sealed, its idempotency key hashed. */
export function toSubmission(
  { sealer, inboxId }: { sealer: Sealer; inboxId: string },
  session: OpenSession,
  entryId: string,
  payload: EntryPayload,
  { idempotencyKey, retry = 'never', startDeadlineMs }: SendOptions,
): Submission {
  const { generation } = session;
  const place = sealPlace('payload', session.keys, {
    ...{ id: entryId, generation, retry, inbox: inboxId },
    ...(sealer.signs ? { spec: session.spec } : {}),
  });
  return {
    entryId,
    generation,
    kind: payload.type,
    payload: sealer.seal(JSON.stringify(payload), place),
    // Only an idempotency key compares payloads.
    payloadHash: idempotencyKey === undefined ? '' : digestPayload(sealer, payload),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey: hashIdempotencyKey(idempotencyKey) }),
    inbox: inboxId,
    retry,
    ...(payload.type === 'command' && payload.input !== undefined ? { input: payload.input } : {}),
    ...(startDeadlineMs === undefined ? {} : { startDeadlineMs }),
  };
}

/** The digest by which payloads under one idempotency key are compared. Whether somebody reads the output makes no other command of it. */
export function digestPayload(sealer: Sealer, payload: EntryPayload): string {
  return sealer.digest(toCanonicalJson({ ...payload, reader: undefined }));
}
