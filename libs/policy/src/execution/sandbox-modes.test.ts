import { readFileSync } from 'node:fs';
import {
  NETWORK_ACCESSES,
  resolveSandbox,
  SANDBOX_MODES,
  SANDBOX_TABLE,
  sandboxOptionsSchema,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { checkSandbox, type SandboxAllowances } from './sandbox-modes.ts';

const EVERYTHING: SandboxAllowances = {
  modes: SANDBOX_MODES,
  networks: NETWORK_ACCESSES,
  hosts: ['*.example.org', 'registry.npmjs.org:443'],
};
const USUAL: SandboxAllowances = { modes: ['read-only', 'workspace-write'], networks: ['restricted'], hosts: [] };

type Policy = keyof typeof SANDBOX_TABLE;
const POLICIES = Object.keys(SANDBOX_TABLE) as Policy[];

/** Builds specs, including specs that the schema refuses. */
const specOf = (policy: Policy, sandbox?: object) => ({
  policy: { type: policy } as ReturnType<typeof sessionSpecSchema.parse>['policy'],
  sandbox: sandbox && sandboxOptionsSchema.parse(sandbox),
});
const pathsOf = (policy: Policy, sandbox: object | undefined, allowances = EVERYTHING) =>
  checkSandbox(specOf(policy, sandbox), allowances).map(({ path }) => path);

/** For each mode, whether restricted, limited and full networks are enforced (+) or refused (-). */
const EXPECTED: Record<Policy, Record<(typeof SANDBOX_MODES)[number], string>> = {
  docker: { 'read-only': '+++', 'workspace-write': '+++', 'danger-full-access': '+++', external: '---' },
  host: { 'read-only': '---', 'workspace-write': '---', 'danger-full-access': '--+', external: '--+' },
  bubblewrap: { 'read-only': '+++', 'workspace-write': '+++', 'danger-full-access': '---', external: '---' },
  codex: { 'read-only': '+--', 'workspace-write': '+-+', 'danger-full-access': '---', external: '---' },
  kubernetes: { 'read-only': '+++', 'workspace-write': '+++', 'danger-full-access': '+++', external: '---' },
};

describe('the table of modes and networks under each policy', () => {
  // The networks are listed here, not taken from the schema, so that a missing one is noticed.
  const networks = ['restricted', 'limited', 'full'] as const;
  const modes = Object.keys(EXPECTED.docker) as (typeof SANDBOX_MODES)[number][];
  const rows = POLICIES.flatMap((policy) => modes.map((mode) => [policy, mode] as const));

  // S3-12, S3-15
  test.each(rows)('decides for %s and %s whether each network is enforced or refused', (policy, mode) => {
    const had = networks.map((network) => (pathsOf(policy, { mode, network }).length === 0 ? '+' : '-'));
    expect(had.join('')).toBe(EXPECTED[policy][mode]);
  });

  // S3-20: such a session never waits for a host.
  test.each(rows)('refuses at opening, for %s and %s, sandboxes that no host can enforce', (policy, mode) => {
    for (const network of networks)
      for (const selection of ['auto', 'require', 'forbid'] as const) {
        const sandbox = { mode, network, selection };
        const row = SANDBOX_TABLE[policy].modes[mode];
        const isSandbox = mode === 'read-only' || mode === 'workspace-write';
        const contradicts = selection === (isSandbox ? 'forbid' : 'require');
        const whole = networks.every((other) => row[other] !== undefined && row[other] === row[network]);
        const paths = [
          ...(contradicts ? ['sandbox.selection'] : []),
          ...(row[network] === undefined ? [] : [whole ? 'sandbox.mode' : 'sandbox.network']),
        ];
        const { error } = sessionSpecSchema.safeParse({ policy, sandbox });
        expect([sandbox, error?.issues.map(({ path }) => path.join('.')) ?? []]).toEqual([sandbox, paths]);
        expect(pathsOf(policy, sandbox)).toEqual(paths);
      }
  });

  test('is the table of docs/sandboxes.md', () => {
    const page = readFileSync(new URL('../../../../docs/sandboxes.md', import.meta.url), 'utf8');
    const written = page.split('\n').filter((line) => /^\| `[a-z]+` \| `[a-z-]+` \|/.test(line));
    const lines = rows.map(([policy, mode]) => {
      const row = SANDBOX_TABLE[policy].modes[mode];
      const cells = networks.map((network) => (row[network] === undefined ? 'yes' : 'refused'));
      return `| \`${policy}\` | \`${mode}\` | ${cells.join(' | ')} | ${row.writes} |`;
    });
    expect(written).toEqual(lines);
  });
});

describe('a spec without sandbox options', () => {
  test.each([
    ['docker', 'workspace-write', 'restricted', true],
    ['host', 'external', 'full', false],
    ['bubblewrap', 'workspace-write', 'restricted', true],
    ['codex', 'workspace-write', 'restricted', true],
    ['kubernetes', 'workspace-write', 'restricted', true],
  ] as const)(
    'gets under %s the mode %s and the network %s, which need no listing',
    (policy, mode, network, sandboxed) => {
      for (const sandbox of [undefined, {}]) {
        expect(resolveSandbox(specOf(policy, sandbox))).toEqual({ mode, network, sandboxed, allowedHosts: [] });
        expect(pathsOf(policy, sandbox, { modes: [], networks: [], hosts: [] })).toEqual([]);
      }
    },
  );
});

describe('selection', () => {
  // S3-20
  test("of 'forbid' gives no sandbox if the operator lists danger-full-access", () => {
    expect(resolveSandbox(specOf('docker', { selection: 'forbid' }))).toMatchObject({
      mode: 'danger-full-access',
      sandboxed: false,
    });
    expect(pathsOf('docker', { selection: 'forbid' })).toEqual([]);
    expect(pathsOf('docker', { selection: 'forbid' }, USUAL)).toEqual(['sandbox.mode']);
    expect(pathsOf('host', { selection: 'forbid' }, USUAL)).toEqual([]);
    expect(pathsOf('docker', { selection: 'forbid', mode: 'read-only' })).toEqual(['sandbox.selection']);
  });

  // S3-17, S3-20, S3-21
  test("of 'require' is refused wherever the policy or mode makes no sandbox", () => {
    expect(pathsOf('docker', { selection: 'require' })).toEqual([]);
    expect(pathsOf('host', { selection: 'require' })).toEqual(['sandbox.selection']);
    expect(pathsOf('docker', { selection: 'require', mode: 'danger-full-access' })).toEqual(['sandbox.selection']);
  });

  // S3-13
  test.each([
    ['read-only', true],
    ['workspace-write', true],
    ['danger-full-access', false],
    ['external', false],
  ] as const)("gives for 'auto' in the mode %s a sandbox: %s", (mode, sandboxed) => {
    expect(resolveSandbox(specOf('docker', { mode })).sandboxed).toBe(sandboxed);
  });
});

describe('a mode, network or host name that the operator has not listed', () => {
  test('is refused with what is allowed', () => {
    const sandbox = { mode: 'danger-full-access', network: 'full' };
    expect(checkSandbox(specOf('docker', sandbox), USUAL)).toEqual([
      {
        path: 'sandbox.mode',
        message:
          "this host does not allow 'danger-full-access'; it allows 'workspace-write', 'read-only' (its operator's setting: allow.modes of SHELLFLEET_CONFIG)",
      },
      {
        path: 'sandbox.network',
        message:
          "this host does not allow 'full'; it allows 'restricted' (its operator's setting: allow.networks of SHELLFLEET_CONFIG)",
      },
    ]);
  });

  test('is refused by host name, unless a listed pattern covers the name', () => {
    const limited = (allowedHosts: string[]) => specOf('docker', { network: 'limited', allowedHosts });
    expect(checkSandbox(limited(['a.example.org', '*.b.example.org', 'registry.npmjs.org:443']), EVERYTHING)).toEqual(
      [],
    );
    expect(checkSandbox(limited(['example.org', 'a.example.org', 'evil.net']), EVERYTHING)).toEqual([
      {
        path: 'sandbox.allowedHosts',
        message:
          "example.org, evil.net: this host does not allow it; it allows *.example.org, registry.npmjs.org:443 (its operator's setting: allow.hosts of SHELLFLEET_CONFIG)",
      },
    ]);
    expect(checkSandbox(limited(['a.example.org']), { ...EVERYTHING, hosts: [] })[0]?.message).toBe(
      "a.example.org: this host does not allow it; it allows none (its operator's setting: allow.hosts of SHELLFLEET_CONFIG)",
    );
  });
});
