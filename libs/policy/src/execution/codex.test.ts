import { isShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { codexArguments, planCodex, readCodexForm } from './codex.ts';

const MIB = 2 ** 20;
const allowances = {
  workspaces: [],
  bounds: { memoryBytes: 8192 * MIB, cpus: 4, pids: 4096, diskQuota: false },
  controlGroups: true,
};

// Help texts of the programs, of which only the options are left out.
const HELP = {
  '0.169.0': `Run commands within a Codex-provided sandbox

Usage: codex sandbox [OPTIONS] [COMMAND]... [COMMAND]

Commands:
  uninstall  Remove the legacy Windows sandbox's machine-wide accounts and network rules
  help       Print this message or the help of the given subcommand(s)

Arguments:
  [COMMAND]...
          Full command args to run under the Linux sandbox
`,
  '0.120.0': `Run commands within a Codex-provided sandbox

Usage: codex sandbox [OPTIONS] <COMMAND>

Commands:
  macos    Run a command under Seatbelt (macOS only) [aliases: seatbelt]
  linux    Run a command under the Linux sandbox (bubblewrap by default) [aliases: landlock]
  windows  Run a command under Windows restricted token (Windows only)
  help     Print this message or the help of the given subcommand(s)
`,
};

function plan(configOverrides: Record<string, unknown> = {}, spec: object = {}, more: object = {}) {
  const policy = { type: 'codex', configOverrides };
  return planCodex(sessionSpecSchema.parse({ policy, ...spec }), { ...allowances, ...more });
}

function refusalOf(configOverrides: Record<string, unknown>) {
  try {
    plan(configOverrides);
  } catch (error) {
    if (isShellfleetError(error)) return error.context.issues;
    throw error;
  }
  return undefined;
}

describe('how Codex is called', () => {
  // S0-22, S0-29
  test('has the platform as a subcommand only if the help of Codex lists one', () => {
    expect(readCodexForm(HELP['0.169.0'])).toBe('plain');
    expect(readCodexForm(HELP['0.120.0'])).toBe('linux');
    expect(readCodexForm('error: unrecognized subcommand')).toBeUndefined();
  });

  // S0-22, S0-23, S0-25, S2-11
  test('sorts settings by key as JSON, after the platform and before --', () => {
    const config = { sandbox_mode: 'read-only', b: [1, 'two'], a: true };
    const settings = ['-c', 'a=true', '-c', 'b=[1,"two"]', '-c', 'sandbox_mode="read-only"', '--'];
    expect(codexArguments('plain', config)).toEqual(['sandbox', ...settings]);
    expect(codexArguments('linux', config)).toEqual(['sandbox', 'linux', ...settings]);
  });
});

describe('planCodex', () => {
  test('refuses a read-only workspace, to which Codex would let the session write', () => {
    const spec = { policy: 'codex', workspace: { path: '/srv/projects', readOnly: true } };
    expect(sessionSpecSchema.safeParse(spec).error?.issues.map(({ path }) => path)).toEqual([['workspace']]);
  });

  // S0-21, S0-57
  test('plans the same as the policy host, with a writable workspace and without a network', () => {
    expect(plan()).toEqual({
      workspace: undefined,
      group: { memoryBytes: 512 * MIB, cpus: 1, pids: 256 },
      process: { addressSpaceBytes: undefined, cpuTimeSeconds: undefined, fileSizeBytes: undefined },
      config: { sandbox_mode: 'workspace-write', 'sandbox_workspace_write.network_access': false },
    });
  });

  test('takes mode and network from the spec, and the overrides that narrow them', () => {
    expect(plan({}, { sandbox: { mode: 'read-only' } }).config.sandbox_mode).toBe('read-only');
    expect(plan({ sandbox_mode: 'read-only' }).config.sandbox_mode).toBe('read-only');
    const sandbox = { modes: ['workspace-write'], networks: ['full'], hosts: [] };
    const full = plan({}, { sandbox: { network: 'full' } }, { sandbox });
    expect(full.config['sandbox_workspace_write.network_access']).toBe(true);
  });

  test.each([
    ['sandbox_mode', 'danger-full-access', /does not narrow/],
    ['sandbox_workspace_write.network_access', true, /does not narrow/],
    ['sandbox_workspace_write.writable_roots', ['/'], /is not a setting that a session may give/],
    ['notify', ['/bin/sh'], /is not a setting that a session may give/],
  ])('refuses an override of %s that could widen the sandbox', (key, value, message) => {
    expect(refusalOf({ [key]: value })).toEqual([
      { path: `policy.configOverrides.${key}`, message: expect.stringMatching(message) },
    ]);
  });
});
