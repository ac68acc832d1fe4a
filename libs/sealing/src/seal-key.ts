import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { ShellfleetError } from '@shellfleet/protocol';

export interface SealKey {
  /** Id that names the key in sealed values, and reveals nothing of it. */
  id: string;
  secret: KeyObject;
}

/** Parses 32 bytes in base64 or hex. */
export function parseSealKey(text: string): SealKey {
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
  if (bytes.byteLength !== 32)
    throw new ShellfleetError(
      'SEAL_KEY_UNKNOWN',
      'A seal key is not 32 bytes in base64 or hex. `openssl rand -base64 32` makes one.',
    );
  return {
    id: createHash('sha256').update('shellfleet seal key id').update(bytes).digest('base64url').slice(0, 8),
    secret: createSecretKey(bytes),
  };
}
