import { createPublicKey, diffieHellman, type KeyObject } from 'node:crypto';

export const KEY_BYTES = 32;

export function toPublicBytes(key: KeyObject): Buffer {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
}

/** Returns the shared secret with the owner of a public key. Throws for a point of low order. */
export function sharedSecret(privateKey: KeyObject, publicBytes: Uint8Array): Buffer {
  const x = Buffer.from(publicBytes).toString('base64url');
  return diffieHellman({
    privateKey,
    publicKey: createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' }),
  });
}
