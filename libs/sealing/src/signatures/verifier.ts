import { type KeyObject, verify } from 'node:crypto';
import { ShellfleetError } from '@shellfleet/protocol';
import type { SealPlace } from '../seal-place.ts';
import { type Signature, type SignedValue, toStatement } from './signed-value.ts';
import { keyIdOf } from './signing-keys.ts';

/** A key that may sign. An owner can have several keys, for example while one replaces another. */
export interface KnownKey {
  id: string;
  /** Tenants for which the key is valid. `*` means every tenant. */
  tenants: readonly string[];
  publicKey: KeyObject;
}

export interface KnownKeys {
  producers: readonly KnownKey[];
  approvers: readonly KnownKey[];
}

export interface Verifier {
  /**
   * Throws UNAUTHORIZED unless a known key of the tenant signed this value for this place. A signature of a kind in
   * USED_AT_ONCE must not have expired.
   */
  verify(value: SignedValue, place: SealPlace): Signature;
  /**
   * Throws UNAUTHORIZED. Without `problem`, the reported problem is that the value was altered or sealed for another
   * place.
   */
  refuse(place: SealPlace, problem?: string): never;
}

const ED25519_SIGNATURE_BYTES = 64;
/** Kinds of values on which a host acts as soon as it opens them. */
const USED_AT_ONCE: ReadonlySet<SealPlace['kind']> = new Set([
  'close',
  'cancel',
  'input-end',
  'terminal-input',
  'tool-args',
  'tool-cancel',
]);

/** Creates a verifier. `onRefused` gets each refused value and the failed part of the check, for audit and log. */
export function createVerifier(
  { producers, approvers }: KnownKeys,
  onRefused: (place: SealPlace, problem: string) => void,
): Verifier {
  const producersById = byKeyId(producers);
  const approversById = byKeyId(approvers);
  const refuse = (place: SealPlace, problem: string): never => {
    onRefused(place, problem);
    throw unauthorized();
  };
  return {
    refuse: (place, problem = 'it was altered, or stands in another place than the one it was made for') =>
      refuse(place, problem),
    verify(value, place) {
      const keys = place.kind === 'approval-answer' ? approversById : producersById;
      const verified = check(value, place, keys);
      return typeof verified === 'string' ? refuse(place, verified) : verified;
    },
  };
}

/**
 * Returns the error of every refusal. The error gives no reason, because a reason could help forgers. The audit has the
 * reason.
 */
export function unauthorized(): ShellfleetError {
  return new ShellfleetError(
    'UNAUTHORIZED',
    'Nothing was run: this host only does what a known key of the tenant has signed for exactly this purpose, and that has not expired (SHELLFLEET_SIGNING_KEY).',
  );
}

function check(
  { plain, header }: SignedValue,
  place: SealPlace,
  keys: ReadonlyMap<string, KnownKey>,
): Signature | string {
  if (header === undefined) return 'it is not signed';
  const known = keys.get(header.key);
  if (known === undefined) return `the key ${header.key.slice(0, 64)} is not known`;
  if (!known.tenants.includes(place.tenant) && !known.tenants.includes('*'))
    return `the key of ${known.id} is not known for this tenant`;
  const signature = Buffer.from(header.signature, 'base64url');
  const isExact =
    signature.byteLength === ED25519_SIGNATURE_BYTES && signature.toString('base64url') === header.signature;
  if (!isExact || !verify(null, toStatement(plain, place, header), known.publicKey, signature))
    return `the signature by ${known.id} is not of this value in this place`;
  if (USED_AT_ONCE.has(place.kind) && header.expiresAt <= Date.now()) return `the signature by ${known.id} has expired`;
  return { signer: known.id, key: header.key, expiresAt: header.expiresAt };
}

function byKeyId(keys: readonly KnownKey[]): Map<string, KnownKey> {
  return new Map(keys.map((key) => [keyIdOf(key.publicKey), key]));
}
