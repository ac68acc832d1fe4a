import { type FieldIssue, ShellfleetError } from '@shellfleet/protocol';

/** Adds to a message the name of the setting with which an operator allows what a spec asks for. */
export const withSetting = (message: string, setting: string) => `${message} (its operator's setting: ${setting})`;

/** Throws SANDBOX_UNAVAILABLE with each field in which a spec asks for more than the host allows or can enforce. */
export function refuse(issues: FieldIssue[]): void {
  if (issues.length === 0) return;
  const list = issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ');
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host does not run what the session asks for. ${list}. Ask for less, or have the operator of the host allow it.`,
    { issues },
  );
}
