import { ShellfleetError } from '@shellfleet/protocol';

/** The end of a command that asks to leave its sandbox: it would run inside, though its submitter, and perhaps a person, believe otherwise. */
export function noWiderSandbox(): ShellfleetError {
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    'The command asks to leave its sandbox (escalate), and this host has no wider one to run it in. Nothing was run. Submit it without escalate to run it inside.',
  );
}
