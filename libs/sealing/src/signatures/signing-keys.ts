import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

// Ed25519 keys in PEM, or in base64 of the DER or of the 32 bytes.

const RAW_BYTES = 32;
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** Parses a private key. Returns undefined for anything but a private key of Ed25519. */
export function parsePrivateKey(text: string): KeyObject | undefined {
  return tryKey(() => {
    if (text.includes('-----BEGIN')) return createPrivateKey(text);
    const key = toDer(text, PRIVATE_PREFIX);
    return key && createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  });
}

/**
 * Parses a public key. Returns undefined for anything but a public key of Ed25519, so that nobody spreads a private key
 * by mistake.
 */
export function parsePublicKey(text: string): KeyObject | undefined {
  return tryKey(() => {
    if (text.includes('PRIVATE KEY-----')) return undefined;
    if (text.includes('-----BEGIN')) return createPublicKey(text);
    const key = toDer(text, PUBLIC_PREFIX);
    return key && createPublicKey({ key, format: 'der', type: 'spki' });
  });
}

/** Returns the id of a public key: the beginning of its hash. */
export function keyIdOf(publicKey: KeyObject): string {
  const der = publicKey.export({ format: 'der', type: 'spki' });
  return createHash('sha256').update(der).digest('base64url').slice(0, 16);
}

function toDer(text: string, prefix: Buffer): Buffer | undefined {
  const bytes = Buffer.from(text.trim(), 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') !== text.trim().replace(/=+$/, '')) return undefined;
  return bytes.byteLength === RAW_BYTES ? Buffer.concat([prefix, bytes]) : bytes;
}

function tryKey(parse: () => KeyObject | undefined): KeyObject | undefined {
  try {
    const key = parse();
    return key?.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}
