import { ShellfleetError } from '@shellfleet/protocol';

/** The end of a command that asks to leave its sandbox: it would run inside, though its submitter, and perhaps a person, believe otherwise. */
export function noWiderSandbox(refusal = 'this host has no wider one to run it in'): ShellfleetError {
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The command asks to leave its sandbox (escalate), and that cannot be: ${refusal}. Nothing was run. Submit it without escalate to run it inside.`,
  );
}
