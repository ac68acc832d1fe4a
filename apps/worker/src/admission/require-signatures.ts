import { unauthorized } from '@shellfleet/sealing';
import type { AdmissionQuestion } from './admission.ts';
import type { Signatures } from './create-admission.ts';

/**
 * Lets pass what is signed and has not expired. The signature itself was verified when the entry was opened. `digest`: of the known keys.
 * `onExpired` is told of what is refused. Uses the clock of this host: whoever can write to Redis may also set the other one.
 */
export function requireSignatures(digest: string, onExpired: (question: AdmissionQuestion) => void): Signatures {
  return {
    digest,
    async check(question) {
      const { signature } = question;
      if (signature !== undefined && signature.expiresAt > Date.now()) return;
      onExpired(question);
      throw unauthorized();
    },
  };
}
