import { type PolicyName, ShellfleetError } from '@shellfleet/protocol';

/** This host cannot run sessions under the policy at all. */
export function unavailable(policy: PolicyName, reason: string): ShellfleetError {
  return new ShellfleetError('SANDBOX_UNAVAILABLE', `This host cannot offer the ${policy} policy: ${reason}.`);
}
