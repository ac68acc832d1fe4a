import {
  type FieldIssue,
  isSandboxed,
  type NetworkAccess,
  type PolicyName,
  type ResolvedSandbox,
  type ResolvedSessionSpec,
  resolveSandbox,
  SANDBOX_TABLE,
  type SandboxMode,
  workspaceOf,
} from '@shellfleet/protocol';
import { WORKSPACE_PATH } from './directories.ts';
import { isWithinPatterns } from './host-patterns.ts';
import { checkSandbox, type SandboxAllowances } from './sandbox-modes.ts';

// Plans the wider sandbox: the session's policy with the operator's mode and network, neither
// narrower than in the sandbox of the session.

/** The operator's `escalation`. At least one of the two fields is given. */
interface Escalation {
  mode?: SandboxMode | undefined;
  network?: NetworkAccess | undefined;
}

/** The operator's settings for the sandboxes of sessions, and for the wider sandbox of commands that leave them. */
export interface WiderSettings {
  escalation: Escalation;
  allow: SandboxAllowances;
}

interface WiderSandbox {
  /** The session's spec with the wider sandbox. */
  spec: ResolvedSessionSpec;
  allowances: SandboxAllowances;
}

type Plannable = Pick<ResolvedSessionSpec, 'policy' | 'sandbox'>;

const BREADTH_OF_MODE: Record<SandboxMode, number> = {
  'read-only': 0,
  'workspace-write': 1,
  // Under every policy that makes a sandbox, this mode has the limits of `workspace-write`.
  'danger-full-access': 1,
  external: 2,
};
const BREADTH_OF_NETWORK: Record<NetworkAccess, number> = { restricted: 0, limited: 1, full: 2 };

const NOT_WIDER = 'what its operator allows outside is not wider than what the session has';
const NOTHING_TO_LEAVE = (policy: PolicyName) => `the session has no sandbox to leave: its policy is ${policy}`;
const NO_SHARED_FILES =
  'the files of a docker session without a workspace are in its own container, and no other sandbox sees them';

const STAYS_IN_POD =
  "nothing leaves its Pod under the kubernetes policy: another Pod would not see the session's files";

const READS_FILES =
  'its shell is not plainly bash, dash, ash or sh of the system, and might read files of the session before the command';

/**
 * Plans the wider sandbox of a session's commands. `refusal` is the reason why they cannot leave the sandbox, as the
 * end of a sentence.
 */
export function widenSandbox(
  spec: ResolvedSessionSpec,
  settings: WiderSettings | undefined,
): WiderSandbox | { refusal: string } {
  if (settings === undefined) return { refusal: 'this host has no wider sandbox' };
  const { type } = spec.policy;
  if (type === 'host' || !resolveSandbox(spec).sandboxed) return { refusal: NOTHING_TO_LEAVE(type) };
  if (type === 'kubernetes') return { refusal: STAYS_IN_POD };
  if (type === 'docker' && workspaceOf(spec) === undefined) return { refusal: NO_SHARED_FILES };
  if (!isPlainShell(spec)) return { refusal: READS_FILES };
  const wider = widen(spec, settings);
  if ('refusal' in wider) return wider;
  return { spec: { ...withoutNarrowing(spec, wider.sandbox), sandbox: wider.sandbox }, allowances: wider.allowances };
}

/** Returns why no session under these policies could leave its sandbox, as the end of a sentence. */
export function checkEscalation(settings: WiderSettings, policies: readonly PolicyName[]): string | undefined {
  const { escalation, allow } = settings;
  if (escalation.network === 'limited' && allow.hosts.length === 0)
    return "network 'limited' reaches only what allow.hosts lists, and that is empty";
  const makers = policies.filter((policy) => policy !== 'host' && policy !== 'kubernetes');
  if (makers.length === 0) return 'no policy of this host has a sandbox whose files another one can share';
  const tried = makers.flatMap((policy) => sessionsOf(policy, allow).map((session) => widen(session, settings)));
  const refusals = tried.map((wider) => ('refusal' in wider ? wider.refusal : undefined));
  if (refusals.includes(undefined)) return undefined;
  return refusals.find((refusal) => refusal !== NOT_WIDER) ?? 'is not wider than what every session here has anyway';
}

function widen(
  session: Plannable,
  { escalation, allow }: WiderSettings,
): { sandbox: NonNullable<ResolvedSessionSpec['sandbox']>; allowances: SandboxAllowances } | { refusal: string } {
  const own = resolveSandbox(session);
  const { mode = own.mode, network = own.network } = escalation;
  const writesMore = BREADTH_OF_MODE[mode] > BREADTH_OF_MODE[own.mode];
  const reachesMore = escalation.network !== undefined && isBroader(network, own, allow.hosts);
  if (!writesMore && !reachesMore) return { refusal: NOT_WIDER };
  const reached = reachesMore ? network : own.network;
  const hosts = reachesMore ? allow.hosts : own.allowedHosts;
  const sandbox = {
    mode: writesMore ? mode : own.mode,
    network: reached,
    ...(reached === 'limited' ? { allowedHosts: [...hosts] } : {}),
    selection: session.sandbox?.selection ?? 'auto',
    escalateOnFailure: false,
  };
  const allowances = {
    modes: [...allow.modes, sandbox.mode],
    networks: [...allow.networks, sandbox.network],
    hosts: allow.hosts,
  };
  const issues = checkSandbox({ ...session, sandbox }, allowances);
  return issues.length === 0 ? { sandbox, allowances } : { refusal: describe(issues) };
}

/** Shells that read no other file when they run a script, unless a variable names a file. */
const SHELLS = ['bash', 'dash', 'ash', 'sh'];
const HARMLESS_OPTIONS = ['--norc', '--noprofile', '--posix', '-p'];

/**
 * Tells whether the shell is a plain bash, dash, ash or sh of the system whose arguments make it run and read nothing.
 */
export function isPlainShell(spec: Pick<ResolvedSessionSpec, 'shell' | 'workspace'>): boolean {
  return readsNoFile(spec.shell, [WORKSPACE_PATH, workspaceOf(spec)?.target ?? WORKSPACE_PATH]);
}

/** Tells whether the shell, including its program, reads nothing that the session can write in its `directories`. */
function readsNoFile(shell: readonly string[] | undefined, directories: readonly string[]): boolean {
  if (shell === undefined) return true;
  const [program = '', ...words] = shell;
  const names = program.split('/');
  const isRelative = names.length > 1 && names[0] !== '';
  const isSessions = directories.some((directory) => program.startsWith(`${directory}/`));
  if (isRelative || isSessions || names.slice(1).some((name) => name === '..' || name === '')) return false;
  const name = names.at(-1) ?? '';
  const applet = name === 'busybox' ? words.shift() : name;
  return SHELLS.includes(applet ?? '') && words.every((word) => HARMLESS_OPTIONS.includes(word));
}

function isBroader(network: NetworkAccess, own: ResolvedSandbox, hosts: readonly string[]): boolean {
  if (network !== 'limited' || own.network !== 'limited')
    return BREADTH_OF_NETWORK[network] > BREADTH_OF_NETWORK[own.network];
  return hosts.some((pattern) => !isWithinPatterns(pattern, own.allowedHosts));
}

/** Removes Codex settings that would narrow the wider sandbox. */
function withoutNarrowing(
  spec: ResolvedSessionSpec,
  { mode, network }: NonNullable<ResolvedSessionSpec['sandbox']>,
): ResolvedSessionSpec {
  if (spec.policy.type !== 'codex') return spec;
  const own = resolveSandbox(spec);
  const configOverrides = { ...spec.policy.configOverrides };
  if (mode !== own.mode) delete configOverrides.sandbox_mode;
  if (network !== own.network) delete configOverrides['sandbox_workspace_write.network_access'];
  return { ...spec, policy: { ...spec.policy, configOverrides } };
}

/** Returns every sandbox that a session of the policy may have. */
function sessionsOf(type: PolicyName, { modes, networks }: SandboxAllowances): Plannable[] {
  const { usual, modes: rows } = SANDBOX_TABLE[type];
  const policy = { type } as ResolvedSessionSpec['policy'];
  return [usual.mode, ...modes].filter(isSandboxed).flatMap((mode) =>
    [usual.network, ...networks]
      .filter((network) => rows[mode][network] === undefined)
      .map((network) => ({
        policy,
        sandbox: {
          ...{ mode, network, selection: 'auto' as const, escalateOnFailure: true },
          ...(network === 'limited' ? { allowedHosts: [] } : {}),
        },
      })),
  );
}

function describe(issues: readonly FieldIssue[]): string {
  return issues.map(({ path, message }) => `${path}: ${message}`).join('; ');
}
