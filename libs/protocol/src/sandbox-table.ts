import type { PolicyName } from './execution-policy.ts';
import type { FieldIssue } from './field-issues.ts';
import type { NetworkAccess, SandboxMode, SandboxOptions } from './sandbox-options.ts';

// Sandbox mode × network × policy. A cell is the reason of a refusal, or undefined: nothing weaker ever runs instead
// (invariant 9). Specs that no host can enforce fail the schema; operators allow the rest. docs/sandboxes.md has the
// table too.

type Refusal = string | undefined;

/**
 * One mode of a policy: where a session may write, and for each network the reason of its refusal, if it is refused.
 */
type ModeRow = { writes: string } & Record<NetworkAccess, Refusal>;

interface PolicyTable {
  /** Sandbox of a session whose spec names none. The operator allows it by offering the policy. */
  usual: { mode: SandboxMode; network: NetworkAccess };
  modes: Record<SandboxMode, ModeRow>;
}

const enforced = (writes: string, refusals: Partial<Record<NetworkAccess, string>> = {}): ModeRow => ({
  ...{ writes, restricted: undefined, limited: undefined, full: undefined },
  ...refusals,
});
const refused = (reason: string): ModeRow => ({ writes: '-', restricted: reason, limited: reason, full: reason });

const HOST_HIDES_NO_FILES = 'the policy host does not confine files: use docker or bubblewrap';
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
      'read-only': refused(HOST_HIDES_NO_FILES),
      'workspace-write': refused(HOST_HIDES_NO_FILES),
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
  kubernetes: {
    usual: { mode: 'workspace-write', network: 'restricted' },
    modes: {
      'read-only': enforced('/tmp, /dev/shm'),
      'workspace-write': enforced('/workspace, and the root of its own container unless readOnlyRootfs'),
      'danger-full-access': enforced('the same: it is still a Pod, but counts as no sandbox for approvals'),
      external: refused(IS_A_SANDBOX('kubernetes')),
    },
  },
};

export interface ResolvedSandbox {
  mode: SandboxMode;
  network: NetworkAccess;
  /** Whether approvals count the mode as a sandbox: `danger-full-access` and `external` prevent nothing. */
  sandboxed: boolean;
  /** The names that the network `limited` lets through. */
  allowedHosts: readonly string[];
}

/** The fields of a spec that choose its sandbox. */
export interface SandboxChoice {
  policy: { type: PolicyName };
  sandbox?: SandboxOptions | undefined;
}

/** Returns the sandbox of a spec, with the policy's defaults. `checkSandbox` tells whether a host can provide it. */
export function resolveSandbox({ policy, sandbox }: SandboxChoice): ResolvedSandbox {
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

/** Mode that every policy may have without being listed by an operator. */
const LEAST_MODE: SandboxMode = 'read-only';

/**
 * Returns which of a mode and a network the operator of a host does not allow, with the reasons. What the policy
 * provides without being listed is always allowed, so it is no reason to wait for another host.
 */
export function refusedByLists(
  policy: PolicyName,
  { mode, network }: { mode?: string | undefined; network?: string | undefined },
  { modes, networks }: { modes: readonly string[]; networks: readonly string[] },
): FieldIssue[] {
  const { usual } = SANDBOX_TABLE[policy];
  return [
    ...checkListed('mode', mode, [usual.mode, LEAST_MODE, ...modes]),
    ...checkListed('network', network, [usual.network, ...networks]),
  ];
}

function checkListed(field: 'mode' | 'network', asked: string | undefined, allowed: readonly string[]): FieldIssue[] {
  if (asked === undefined || allowed.includes(asked)) return [];
  const rest = [...new Set(allowed)].map((value) => `'${value}'`).join(', ');
  const setting = `its operator's setting: allow.${field}s of SHELLFLEET_CONFIG`;
  return [{ path: `sandbox.${field}`, message: `this host does not allow '${asked}'; it allows ${rest} (${setting})` }];
}

/** Returns the mode and the network of a spec that a host must list, because no policy provides them without that. */
export function sandboxToList(spec: SandboxChoice): { mode?: SandboxMode; network?: NetworkAccess } {
  const { mode, network } = resolveSandbox(spec);
  const lists = (given: { mode?: SandboxMode; network?: NetworkAccess }) =>
    refusedByLists(spec.policy.type, given, { modes: [], networks: [] }).length > 0;
  return { ...(lists({ mode }) ? { mode } : {}), ...(lists({ network }) ? { network } : {}) };
}

/** Returns the fields that no host can enforce, with the reasons. */
export function refusedSandbox(spec: SandboxChoice): FieldIssue[] {
  const asked = resolveSandbox(spec);
  const row = SANDBOX_TABLE[spec.policy.type].modes[asked.mode];
  return [...checkSelection(spec, asked), ...checkTable(row, asked.network)];
}

export const isSandboxed = (mode: SandboxMode) => mode === 'read-only' || mode === 'workspace-write';

function checkSelection({ policy, sandbox }: SandboxChoice, { mode, sandboxed }: ResolvedSandbox): FieldIssue[] {
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
