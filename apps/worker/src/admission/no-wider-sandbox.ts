import { ShellfleetError } from '@shellfleet/protocol';

/** Returns the error of a command that cannot leave its sandbox as requested, and must not run inside. */
export function noWiderSandbox(refusal = 'this host has no wider one to run it in'): ShellfleetError {
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The command asks to leave its sandbox (escalate), and that cannot be: ${refusal}. Nothing was run. Submit it without escalate to run it inside.`,
  );
}
