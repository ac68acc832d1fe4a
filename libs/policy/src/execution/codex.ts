import { type FieldIssue, type ResolvedSessionSpec, resolveSandbox } from '@shellfleet/protocol';
import { type HostAllowances, type HostPolicyPlan, planHost } from './host.ts';
import { refuse } from './refusal.ts';

// Plans policy `codex`: the plan of policy `host` (user, limits, workspace, private directories) with the sandbox of
// the Codex CLI around the shell. This file decides on Codex's settings; Codex enforces them.

export interface CodexPlan extends HostPolicyPlan {
  /** Settings of the call (`-c key=value`), by key. */
  config: Record<string, unknown>;
}

/** Form of the call: old versions of Codex take the platform as a subcommand. */
export type CodexForm = 'plain' | 'linux';

/** Settings that a session may give, because they can only narrow the sandbox. */
const NARROWING: Record<string, (value: unknown) => boolean> = {
  sandbox_mode: (value) => value === 'read-only',
  'sandbox_workspace_write.exclude_slash_tmp': (value) => value === true,
  'sandbox_workspace_write.exclude_tmpdir_env_var': (value) => value === true,
  'sandbox_workspace_write.network_access': (value) => value === false,
};

/** Plans the session. Throws SANDBOX_UNAVAILABLE with every refused field. */
export function planCodex(spec: ResolvedSessionSpec, allowances: HostAllowances): CodexPlan {
  const overrides = spec.policy.type === 'codex' ? spec.policy.configOverrides : {};
  const { mode, network } = resolveSandbox(spec);
  const plan = planHost(spec, allowances);
  refuse(Object.entries(overrides).flatMap(([key, value]) => checkOverride(key, value)));
  const config = { sandbox_mode: mode, 'sandbox_workspace_write.network_access': network === 'full', ...overrides };
  return { ...plan, config };
}

/**
 * Returns the form of the call, as the text of `codex sandbox --help` shows it. Returns undefined if the text shows
 * neither form.
 */
export function readCodexForm(help: string): CodexForm | undefined {
  if (/^\s+linux\s+Run a command/m.test(help)) return 'linux';
  return /^Usage: codex sandbox \[OPTIONS\] \[COMMAND\]/m.test(help) ? 'plain' : undefined;
}

/**
 * Returns the words after the program: the settings in the order of their keys. Each value is written as JSON, which
 * TOML reads as well.
 */
export function codexArguments(form: CodexForm, config: Record<string, unknown>): string[] {
  const keys = Object.keys(config).sort();
  return [
    'sandbox',
    ...(form === 'linux' ? ['linux'] : []),
    ...keys.flatMap((key) => ['-c', `${key}=${JSON.stringify(config[key])}`]),
    '--',
  ];
}

function checkOverride(key: string, value: unknown): FieldIssue[] {
  const path = `policy.configOverrides.${key}`;
  const narrows = NARROWING[key];
  if (narrows === undefined)
    return [{ path, message: `is not a setting that a session may give: ${Object.keys(NARROWING).join(', ')}` }];
  return narrows(value) ? [] : [{ path, message: `${JSON.stringify(value)} does not narrow the sandbox` }];
}
