import type { FieldIssue, NetworkAccess, PolicyName, ResolvedSessionSpec, SandboxMode } from '@shellfleet/protocol';
import { isWithinPatterns } from './host-patterns.ts';
import { withSetting } from './refusal.ts';

// Sandbox mode × network × policy, as data. A cell says that the policy enforces the combination, or why it is refused: nothing weaker is
// ever run in its place (invariant 9). docs/policy.md has the same table, and a test compares them.

/** Undefined: the policy enforces it. Otherwise the reason of the refusal. */
type Refusal = string | undefined;

/** One mode of a policy: what a session may write in it, and whether each network can be had with it. */
type ModeRow = { writes: string } & Record<NetworkAccess, Refusal>;

interface PolicyTable {
  /** What a session has whose spec does not say. Its operator allows it by offering the policy. */
  usual: { mode: SandboxMode; network: NetworkAccess };
  modes: Record<SandboxMode, ModeRow>;
}

const enforced = (writes: string, refusals: Partial<Record<NetworkAccess, string>> = {}): ModeRow => ({
  ...{ writes, restricted: undefined, limited: undefined, full: undefined },
  ...refusals,
});
const refused = (reason: string): ModeRow => ({ writes: '-', restricted: reason, limited: reason, full: reason });

const HOST_HAS_NO_WALL = 'the host policy has no wall around files: use docker or bubblewrap';
const HOST_SHARES_NETWORK = "the host policy shares the host's network: use docker or bubblewrap";
const IS_A_SANDBOX = (policy: string) => `the ${policy} policy makes a sandbox of its own: use the host policy`;
const NO_SOCKETS = "nothing in Codex's sandbox can open a socket, so it cannot reach the proxy";
const CODEX_READS_OFFLINE = "Codex's read-only sandbox has no network: use workspace-write";

export const SANDBOX_TABLE: Record<PolicyName, PolicyTable> = {
  docker: {
    usual: { mode: 'workspace-write', network: 'restricted' },
    modes: {
      'read-only': enforced('/tmp, /dev/shm'),
      'workspace-write': enforced('/workspace, and the root of its own container unless readOnlyRootfs'),
      'danger-full-access': enforced('the same: it is still a container, but counts as no sandbox for approvals'),
      external: refused(IS_A_SANDBOX('docker')),
    },
  },
  host: {
    usual: { mode: 'external', network: 'full' },
    modes: {
      'read-only': refused(HOST_HAS_NO_WALL),
      'workspace-write': refused(HOST_HAS_NO_WALL),
      'danger-full-access': enforced('what its user may', {
        restricted: HOST_SHARES_NETWORK,
        limited: HOST_SHARES_NETWORK,
      }),
      external: enforced('what its user may', { restricted: HOST_SHARES_NETWORK, limited: HOST_SHARES_NETWORK }),
    },
  },
  bubblewrap: {
    usual: { mode: 'workspace-write', network: 'restricted' },
    modes: {
      'read-only': enforced('/tmp, /dev/shm'),
      'workspace-write': enforced('/workspace, /tmp, /dev/shm'),
      'danger-full-access': refused(IS_A_SANDBOX('bubblewrap')),
      external: refused(IS_A_SANDBOX('bubblewrap')),
    },
  },
  codex: {
    usual: { mode: 'workspace-write', network: 'restricted' },
    modes: {
      'read-only': enforced('nothing', { limited: NO_SOCKETS, full: CODEX_READS_OFFLINE }),
      'workspace-write': enforced('/workspace, /tmp', { limited: NO_SOCKETS }),
      'danger-full-access': refused(IS_A_SANDBOX('codex')),
      external: refused(IS_A_SANDBOX('codex')),
    },
  },
};

/** What the operator of a host allows beside what its policies give anyway. */
export interface SandboxAllowances {
  modes: readonly SandboxMode[];
  networks: readonly NetworkAccess[];
  /** The most that `limited` may name. */
  hosts: readonly string[];
}

export const DEFAULT_SANDBOX_ALLOWANCES: SandboxAllowances = {
  modes: ['read-only', 'workspace-write'],
  networks: ['restricted'],
  hosts: [],
};

export interface ResolvedSandbox {
  mode: SandboxMode;
  network: NetworkAccess;
  /** Whether it counts as a sandbox when approvals are decided: in `danger-full-access` and `external` nothing holds a command back. */
  sandboxed: boolean;
  /** The names that the network `limited` lets through. */
  allowedHosts: readonly string[];
}

const LEAST_MODE: SandboxMode = 'read-only';

type AskedSandbox = Pick<ResolvedSessionSpec, 'policy' | 'sandbox'>;

/** What the spec asks for, with what its policy gives where the spec does not say. Whether it can be had: `checkSandbox`. */
export function resolveSandbox({ policy, sandbox }: AskedSandbox): ResolvedSandbox {
  const { usual } = SANDBOX_TABLE[policy.type];
  const usualMode = sandbox?.selection === 'forbid' && isSandboxed(usual.mode) ? 'danger-full-access' : usual.mode;
  const mode = sandbox?.mode ?? usualMode;
  return {
    mode,
    network: sandbox?.network ?? usual.network,
    sandboxed: isSandboxed(mode),
    allowedHosts: sandbox?.allowedHosts ?? [],
  };
}

/** What of it this host refuses, and why. */
export function checkSandbox(spec: AskedSandbox, allowances: SandboxAllowances): FieldIssue[] {
  return [...checkPossible(spec), ...checkAllowed(spec, allowances)];
}

/** What of it every host refuses. */
export function checkPossible(spec: AskedSandbox): FieldIssue[] {
  const asked = resolveSandbox(spec);
  return [
    ...checkSelection(spec, asked),
    ...checkTable(SANDBOX_TABLE[spec.policy.type].modes[asked.mode], asked.network),
  ];
}

/** What of it the operator of this host does not allow. */
export function checkAllowed(spec: AskedSandbox, allowances: SandboxAllowances): FieldIssue[] {
  const asked = resolveSandbox(spec);
  const { usual } = SANDBOX_TABLE[spec.policy.type];
  return [
    // Less than what the policy gives anyway needs no listing either, so it is no reason to wait for a host.
    ...checkListed('mode', asked.mode, usual.mode, [LEAST_MODE, ...allowances.modes]),
    ...checkListed('network', asked.network, usual.network, allowances.networks),
    ...checkHosts(asked.allowedHosts, allowances.hosts),
  ];
}

export const isSandboxed = (mode: SandboxMode) => mode === 'read-only' || mode === 'workspace-write';

function checkSelection({ policy, sandbox }: AskedSandbox, { mode, sandboxed }: ResolvedSandbox): FieldIssue[] {
  const issue = (message: string) => [{ path: 'sandbox.selection', message }];
  if (sandbox?.selection === 'forbid' && sandboxed)
    return issue(`'forbid' asks for no sandbox, and the mode '${mode}' for one: leave one of them out`);
  if (sandbox?.selection === 'require' && !sandboxed)
    return issue(`'require' asks for a sandbox, and the ${policy.type} policy has none in the mode '${mode}'`);
  return [];
}

function checkTable(row: ModeRow, network: NetworkAccess): FieldIssue[] {
  const message = row[network];
  if (message === undefined) return [];
  const isMode = row.restricted === message && row.limited === message && row.full === message;
  return [{ path: isMode ? 'sandbox.mode' : 'sandbox.network', message }];
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
