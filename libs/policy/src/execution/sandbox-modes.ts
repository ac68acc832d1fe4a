import {
  type FieldIssue,
  type NetworkAccess,
  refusedByLists,
  refusedSandbox,
  resolveSandbox,
  type SandboxChoice,
  type SandboxMode,
} from '@shellfleet/protocol';
import { isWithinPatterns } from './host-patterns.ts';
import { withSetting } from './refusal.ts';

/**
 * Sandboxes that the operator of a host allows, in addition to those that its policies provide without being listed.
 */
export interface SandboxAllowances {
  modes: readonly SandboxMode[];
  networks: readonly NetworkAccess[];
  /** The hosts that a session with the network `limited` may name. */
  hosts: readonly string[];
}

export const DEFAULT_SANDBOX_ALLOWANCES: SandboxAllowances = {
  modes: ['read-only', 'workspace-write'],
  networks: ['restricted'],
  hosts: [],
};

/** Returns the fields that this host refuses, with the reasons. */
export function checkSandbox(spec: SandboxChoice, allowances: SandboxAllowances): FieldIssue[] {
  return [...refusedSandbox(spec), ...checkAllowed(spec, allowances)];
}

/** Returns the fields that the operator of this host does not allow, with the reasons. */
export function checkAllowed(spec: SandboxChoice, allowances: SandboxAllowances): FieldIssue[] {
  const asked = resolveSandbox(spec);
  return [...refusedByLists(spec.policy.type, asked, allowances), ...checkHosts(asked.allowedHosts, allowances.hosts)];
}

function checkHosts(asked: readonly string[], allowed: readonly string[]): FieldIssue[] {
  const outside = asked.filter((pattern) => !isWithinPatterns(pattern, allowed));
  if (outside.length === 0) return [];
  const most = allowed.length === 0 ? 'none' : allowed.join(', ');
  const message = `${outside.join(', ')}: this host does not allow it; it allows ${most}`;
  return [{ path: 'sandbox.allowedHosts', message: withSetting(message, 'allow.hosts of SHELLFLEET_CONFIG') }];
}
