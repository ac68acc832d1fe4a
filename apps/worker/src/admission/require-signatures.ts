import { unauthorized } from '@shellfleet/sealing';
import type { AdmissionInput } from './admission.ts';
import type { Signatures } from './create-admission.ts';

/**
 * Requires a signature that has not expired. The signature itself was verified when the entry was opened. `digest` is
 * that of the known keys; `onExpired` is called with each entry that is refused. The clock of this host counts: whoever
 * can write to Redis may be able to set that of Redis.
 */
export function requireSignatures(digest: string, onExpired: (input: AdmissionInput) => void): Signatures {
  return {
    digest,
    async check(input) {
      const { signature } = input;
      if (signature !== undefined && signature.expiresAt > Date.now()) return;
      onExpired(input);
      throw unauthorized();
    },
  };
}
