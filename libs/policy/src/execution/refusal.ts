import { type FieldIssue, ShellfleetError } from '@shellfleet/protocol';

/** Throws what a host says to a session that asks for more than its operator allows or it can enforce, naming each field. */
export function refuse(issues: FieldIssue[]): void {
  if (issues.length === 0) return;
  const list = issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ');
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host does not run what the session asks for. ${list}. Ask for less, or have the operator of the host allow it.`,
    { issues },
  );
}
