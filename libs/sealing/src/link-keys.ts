// The keys of connections to keepers that listen. They are derived from a seal key, so they rotate as seal keys do: the
// first seal key makes new sandboxes, and a sandbox is reached with the seal key that made it.
import { createHash, createHmac, createPrivateKey, createPublicKey, hkdfSync, type KeyObject } from 'node:crypto';
import { parseSealKey } from './seal-key.ts';

export interface LinkKeys {
  /** Hash of the public key: 12 hex digits, so that it can be the value of any label. */
  id: string;
  /** X25519 key that proves to a keeper that a worker of the fleet connects. */
  privateKey: KeyObject;
  /** Public half of the key, which a keeper gets with its environment: 32 bytes. It is no secret. */
  publicKey: Uint8Array;
}

const KEY_BYTES = 32;
/** Everything that PKCS #8 puts before the 32 bytes of an X25519 key. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');

export function linkKeysOf(sealKey: string): LinkKeys {
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8_PREFIX, derive(sealKey, 'shellfleet link')]),
    format: 'der',
    type: 'pkcs8',
  });
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  const publicKey = Uint8Array.from(Buffer.from(x, 'base64url'));
  const id = createHash('sha256').update(publicKey).digest('hex').slice(0, 12);
  return { id, privateKey, publicKey };
}

/** Returns the secret that one keeper shares with the workers: 32 bytes, different for each Pod. */
export function pskOf(sealKey: string, namespace: string, podName: string): Buffer {
  return createHmac('sha256', derive(sealKey, 'shellfleet link psk')).update(`${namespace}\0${podName}`).digest();
}

function derive(sealKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', parseSealKey(sealKey).secret, new Uint8Array(0), purpose, KEY_BYTES));
}
