import { type PolicyName, ShellfleetError } from '@shellfleet/protocol';

/** Returns the error of a host that cannot run any session under the policy. */
export function unavailable(policy: PolicyName, reason: string): ShellfleetError {
  return new ShellfleetError('SANDBOX_UNAVAILABLE', `This host cannot offer the ${policy} policy: ${reason}.`);
}
