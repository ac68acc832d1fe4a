import { createPrivateKey, type KeyObject } from 'node:crypto';

/** Everything that PKCS #8 puts before the 32 bytes of an X25519 key. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');

export function privateKeyFrom(bytes: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, bytes]), format: 'der', type: 'pkcs8' });
}
