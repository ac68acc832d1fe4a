import {
  type FieldIssue,
  type NetworkAccess,
  refusedSandbox,
  resolveSandbox,
  SANDBOX_TABLE,
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

const LEAST_MODE: SandboxMode = 'read-only';

/** Returns the fields that this host refuses, with the reasons. */
export function checkSandbox(spec: SandboxChoice, allowances: SandboxAllowances): FieldIssue[] {
  return [...refusedSandbox(spec), ...checkAllowed(spec, allowances)];
}

/** Returns the fields that the operator of this host does not allow, with the reasons. */
export function checkAllowed(spec: SandboxChoice, allowances: SandboxAllowances): FieldIssue[] {
  const asked = resolveSandbox(spec);
  const { usual } = SANDBOX_TABLE[spec.policy.type];
  return [
    // A mode that the policy provides without being listed is always allowed, so it is no reason to wait for another
    // host.
    ...checkListed('mode', asked.mode, usual.mode, [LEAST_MODE, ...allowances.modes]),
    ...checkListed('network', asked.network, usual.network, allowances.networks),
    ...checkHosts(asked.allowedHosts, allowances.hosts),
  ];
}

function checkListed<T extends string>(field: string, asked: T, usual: T, listed: readonly T[]): FieldIssue[] {
  if (asked === usual || listed.includes(asked)) return [];
  const rest = [...new Set([usual, ...listed])].map((value) => `'${value}'`).join(', ');
  const message = `this host does not allow '${asked}'; it allows ${rest}`;
  return [{ path: `sandbox.${field}`, message: withSetting(message, `allow.${field}s of SHELLFLEET_CONFIG`) }];
}

function checkHosts(asked: readonly string[], allowed: readonly string[]): FieldIssue[] {
  const outside = asked.filter((pattern) => !isWithinPatterns(pattern, allowed));
  if (outside.length === 0) return [];
  const most = allowed.length === 0 ? 'none' : allowed.join(', ');
  const message = `${outside.join(', ')}: this host does not allow it; it allows ${most}`;
  return [{ path: 'sandbox.allowedHosts', message: withSetting(message, 'allow.hosts of SHELLFLEET_CONFIG') }];
}
