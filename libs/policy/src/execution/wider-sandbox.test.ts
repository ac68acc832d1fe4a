import { sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import type { SandboxAllowances } from './sandbox-modes.ts';
import { checkEscalation, type WiderSettings, widenSandbox } from './wider-sandbox.ts';

const ALLOW: SandboxAllowances = { modes: ['read-only', 'workspace-write'], networks: ['restricted'], hosts: [] };
const WITH_HOSTS: SandboxAllowances = { ...ALLOW, networks: ['limited'], hosts: ['*.example.org', 'pypi.org'] };

type Escalation = WiderSettings['escalation'];
const widen = (spec: object, escalation: Escalation, allow = ALLOW) =>
  widenSandbox(sessionSpecSchema.parse({ workspace: '/srv/a', ...spec }), { escalation, allow });
const sandboxOf = (...args: Parameters<typeof widen>) => {
  const wider = widen(...args);
  return 'refusal' in wider ? wider.refusal : wider.spec.sandbox;
};

describe('the wider sandbox of a session', () => {
  const rest = { selection: 'auto', escalateOnFailure: false };

  test.each<[string, object, Escalation, object]>([
    ['the network that the operator named', {}, { network: 'full' }, { mode: 'workspace-write', network: 'full' }],
    [
      'the mode that the operator named',
      { sandbox: { mode: 'read-only' } },
      { mode: 'workspace-write' },
      { mode: 'workspace-write', network: 'restricted' },
    ],
    [
      'what the session has already, if that is more',
      { sandbox: { mode: 'workspace-write' } },
      { mode: 'read-only', network: 'full' },
      { mode: 'workspace-write', network: 'full' },
    ],
    [
      'the mode and the network that the operator named, under bubblewrap',
      { policy: 'bubblewrap', sandbox: { mode: 'read-only' } },
      { mode: 'workspace-write', network: 'full' },
      { mode: 'workspace-write', network: 'full' },
    ],
  ])('has %s', (_what, spec, escalation, expected) => {
    expect(sandboxOf(spec, escalation)).toEqual({ ...expected, ...rest });
  });

  test('keeps everything else of the session', () => {
    const spec = sessionSpecSchema.parse({ workspace: '/srv/a', user: '1234:1234', secrets: { TOKEN: 'x' } });
    const wider = widenSandbox(spec, { escalation: { network: 'full' }, allow: ALLOW });
    expect(wider).toEqual({
      spec: { ...spec, sandbox: { mode: 'workspace-write', network: 'full', ...rest } },
      allowances: { ...ALLOW, modes: [...ALLOW.modes, 'workspace-write'], networks: ['restricted', 'full'] },
    });
  });

  test('under `limited` reaches all hosts that the operator lists, if the session reaches fewer', () => {
    const own = { sandbox: { network: 'limited', allowedHosts: ['pypi.org'] } };
    const limited = { mode: 'workspace-write', network: 'limited', allowedHosts: WITH_HOSTS.hosts, ...rest };
    expect(sandboxOf(own, { network: 'limited' }, WITH_HOSTS)).toEqual(limited);
    expect(sandboxOf({}, { network: 'limited' }, WITH_HOSTS)).toEqual(limited);
    const all = { sandbox: { network: 'limited', allowedHosts: [...WITH_HOSTS.hosts] } };
    expect(sandboxOf(all, { network: 'limited' }, WITH_HOSTS)).toMatch('is not wider');
  });

  test("keeps the session's host names if only the mode is wider", () => {
    const own = { sandbox: { mode: 'read-only', network: 'limited', allowedHosts: ['pypi.org'] } };
    const expected = { mode: 'workspace-write', network: 'limited', allowedHosts: ['pypi.org'], ...rest };
    expect(sandboxOf(own, { mode: 'workspace-write' }, WITH_HOSTS)).toEqual(expected);
  });

  test("drops Codex settings that would narrow the wider sandbox, and keeps the session's other settings", () => {
    const configOverrides = {
      sandbox_mode: 'read-only',
      'sandbox_workspace_write.network_access': false,
      'sandbox_workspace_write.exclude_slash_tmp': true,
    };
    const wider = widen({ policy: { type: 'codex', configOverrides } }, { network: 'full' });
    const left = { sandbox_mode: 'read-only', 'sandbox_workspace_write.exclude_slash_tmp': true };
    expect(wider).toMatchObject({ spec: { policy: { type: 'codex' } } });
    expect('spec' in wider && wider.spec.policy).toEqual({ type: 'codex', configOverrides: left });
  });
});

describe('leaving the sandbox of a session', () => {
  // S3-25
  test.each<[string, object, WiderSettings['escalation'], string]>([
    ['under host', { policy: 'host' }, { network: 'full' }, 'no sandbox to leave: its policy is host'],
    [
      'without a sandbox',
      { sandbox: { mode: 'danger-full-access' } },
      { network: 'full' },
      'no sandbox to leave: its policy is docker',
    ],
    ['of docker without a workspace', { workspace: undefined }, { network: 'full' }, 'without a workspace'],
    ['of kubernetes', { policy: 'kubernetes', workspace: undefined }, { network: 'full' }, 'nothing leaves its Pod'],
    ['that has an equal sandbox already', {}, { mode: 'workspace-write' }, 'is not wider than what the session has'],
    // Outside, the command would run in the same container and fail again.
    ['whose wider sandbox would have the same limits', {}, { mode: 'danger-full-access' }, 'is not wider'],
    [
      'whose policy cannot have the wider sandbox',
      { policy: 'bubblewrap', sandbox: { mode: 'read-only' } },
      { mode: 'danger-full-access' },
      'sandbox.mode: the bubblewrap policy makes a sandbox of its own',
    ],
    [
      'that requires a sandbox',
      { sandbox: { mode: 'read-only', selection: 'require' } },
      { mode: 'danger-full-access' },
      "sandbox.selection: 'require' asks for a sandbox",
    ],
  ])('is refused with the reason to a session %s', (_what, spec, escalation, reason) => {
    expect(widen(spec, escalation)).toEqual({ refusal: expect.stringContaining(reason) });
  });

  const TARGET = { path: '/srv/a', target: '/srv/project' };
  test.each<[string[], (string | object)?]>([
    [['bash', '--login']],
    [['bash', '--rcfile', '/workspace/rc', '-i']],
    [['sh', '/workspace/first.sh']],
    [['zsh']],
    [['env', 'bash']],
    [['./bash']],
    [['/usr/../workspace/bash']],
    [['//workspace/bash']],
    [['/workspace/bin/bash']],
    [['/srv/project/bash'], TARGET],
    [['busybox']],
    [['busybox', 'sh', '-l']],
  ])('is refused with the shell %j, which might read files of the session first', (shell, workspace = '/srv/a') => {
    expect(widen({ shell, workspace }, { network: 'full' })).toEqual({ refusal: expect.stringContaining('its shell') });
  });

  test.each([[['bash']], [['/bin/bash', '--norc', '--noprofile']], [['/bin/dash']], [['/bin/busybox', 'ash']]])(
    'is possible with the shell %j',
    (shell) => {
      expect(widen({ shell }, { network: 'full' })).toMatchObject({ spec: { shell } });
    },
  );

  test('is refused where the operator has set no wider sandbox', () => {
    const refusal = 'this host has no wider sandbox';
    expect(widenSandbox(sessionSpecSchema.parse({ workspace: '/srv/a' }), undefined)).toEqual({ refusal });
  });
});

describe("the operator's settings of a wider sandbox", () => {
  const check = (escalation: Escalation, policies: Parameters<typeof checkEscalation>[1], allow = ALLOW) =>
    checkEscalation({ escalation, allow }, policies);

  test.each<[Escalation, Parameters<typeof checkEscalation>[1], SandboxAllowances?]>([
    [{ network: 'full' }, ['docker']],
    [{ mode: 'workspace-write' }, ['docker']],
    [{ mode: 'danger-full-access' }, ['docker']],
    [{ network: 'limited' }, ['docker'], WITH_HOSTS],
    // The host may offer the wider sandbox if at least one of its policies can have it.
    [{ mode: 'danger-full-access' }, ['bubblewrap', 'docker']],
    [{ mode: 'workspace-write', network: 'full' }, ['codex']],
  ])('%j are accepted for the policies %j', (...args) => {
    expect(check(...args)).toBeUndefined();
  });

  test.each<[Escalation, Parameters<typeof checkEscalation>[1], string, SandboxAllowances?]>([
    [{ mode: 'read-only' }, ['docker'], 'not wider than what every session here has'],
    [{ network: 'restricted' }, ['docker', 'bubblewrap'], 'not wider than what every session here has'],
    [{ mode: 'workspace-write' }, ['docker'], 'not wider', { ...ALLOW, modes: ['workspace-write'] }],
    [{ mode: 'external' }, ['docker'], 'sandbox.mode: the docker policy makes a sandbox of its own'],
    [{ mode: 'danger-full-access' }, ['bubblewrap'], 'sandbox.mode: the bubblewrap policy'],
    [{ network: 'limited' }, ['docker'], 'allow.hosts'],
    [{ network: 'full' }, ['host'], 'no policy of this host has a sandbox'],
    [{ network: 'full' }, ['kubernetes'], 'no policy of this host has a sandbox'],
    [{ network: 'full' }, [], 'no policy of this host has a sandbox'],
  ])('%j are refused for the policies %j: %s', (escalation, policies, reason, allow) => {
    expect(check(escalation, policies, allow)).toContain(reason);
  });
});
