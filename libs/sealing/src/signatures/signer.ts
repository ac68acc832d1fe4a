import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import type { SealPlace } from '../seal-place.ts';
import { joinSigned, toStatement } from './signed-value.ts';
import { keyIdOf } from './signing-keys.ts';

export interface Signer {
  sign(plain: string | Uint8Array, place: SealPlace): Buffer;
}

/** Creates a signer. `validForMs` returns the time for which a value may be used after it was signed. */
export function createSigner(privateKey: KeyObject, validForMs: () => number): Signer {
  const key = keyIdOf(createPublicKey(privateKey));
  return {
    sign(plain, place) {
      const bytes = typeof plain === 'string' ? Buffer.from(plain) : plain;
      const expiresAt = Date.now() + validForMs();
      const signature = sign(null, toStatement(bytes, place, { key, expiresAt }), privateKey).toString('base64url');
      return joinSigned({ key, expiresAt, signature }, bytes);
    },
  };
}
