import { unauthorized } from '@shellfleet/sealing';
import type { AdmissionInput } from './admission.ts';
import type { Signatures } from './create-admission.ts';

/**
 * Requires a signature that has not expired by this host's clock. A writer of Redis may be able to set Redis' clock.
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
