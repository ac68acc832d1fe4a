import { inputEndSchema, type SessionKeys, tryJson } from '@shellfleet/protocol';
import type { Sealer } from '../seal.ts';
import { type SealPlace, sealPlace } from '../seal-place.ts';

// Signed requests to a host. Each request names one entry or generation, so it has no effect on later ones. Without a
// signing key, a request is the empty text.

/** Signs the request to stop an entry, with the reason for its Result. */
export function signCancel(sealer: Sealer, keys: SessionKeys, entryId: string, reason: string): string {
  return sealer.signs ? sealer.seal(reason, sealPlace('cancel', keys, entryId)) : '';
}

/**
 * Returns the reason of a cancellation if a known producer signed the request. `reason` is the reason as stored without
 * a signature.
 */
export function signedReason(
  sealer: Sealer,
  keys: SessionKeys,
  entryId: string,
  { reason, signed }: { reason: string; signed: string },
): string | undefined {
  return sealer.verifies ? tryOpen(sealer, signed, sealPlace('cancel', keys, entryId)) : reason;
}

export function signClose(sealer: Sealer, keys: SessionKeys, generation: string): string {
  return sealer.signs ? sealer.seal('', sealPlace('close', keys, { generation })) : '';
}

export function isSignedClose(sealer: Sealer, keys: SessionKeys, generation: string, signed: string): boolean {
  return !sealer.verifies || tryOpen(sealer, signed, sealPlace('close', keys, { generation })) !== undefined;
}

export interface InputEnd {
  closes: 'end' | 'broken';
  bytes: number;
}

export function signInputEnd(sealer: Sealer, keys: SessionKeys, entryId: string, end: InputEnd): string {
  return sealer.signs ? sealer.seal(JSON.stringify(end), sealPlace('input-end', keys, entryId)) : '';
}

/** Throws UNAUTHORIZED unless a known producer signed exactly this end of the stdin. */
export function checkInputEnd(sealer: Sealer, keys: SessionKeys, entryId: string, end: InputEnd, signed: string): void {
  if (!sealer.verifies) return;
  const place = sealPlace('input-end', keys, entryId);
  const asked = inputEndSchema.safeParse(tryJson(sealer.open(signed, place))).data;
  if (asked?.closes !== end.closes || asked.bytes !== end.bytes) sealer.refuse(place, 'it ends somewhere else');
}

export function signToolCancel(sealer: Sealer, ...[fleet, call]: ToolPlace): string {
  return sealer.signs ? sealer.seal('', sealPlace('tool-cancel', fleet, call)) : '';
}

export function isSignedToolCancel(sealer: Sealer, signed: string, ...[fleet, call]: ToolPlace): boolean {
  return !sealer.verifies || tryOpen(sealer, signed, sealPlace('tool-cancel', fleet, call)) !== undefined;
}

type ToolPlace = [fleet: { namespace: string }, call: { tenant: string; name: string; id: string }];

function tryOpen(sealer: Sealer, signed: string, place: SealPlace): string | undefined {
  try {
    return sealer.open(signed, place);
  } catch {
    return undefined;
  }
}
