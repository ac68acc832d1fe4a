import { ShellfleetError } from '@shellfleet/protocol';

/**
 * Returns the error with which a command ends that asks to leave its sandbox and cannot. It is not run inside instead:
 * its submitter, and perhaps a person, expect it to run outside.
 */
export function noWiderSandbox(refusal = 'this host has no wider one to run it in'): ShellfleetError {
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The command asks to leave its sandbox (escalate), and that cannot be: ${refusal}. Nothing was run. Submit it without escalate to run it inside.`,
  );
}
