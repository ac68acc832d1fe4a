import { describe, expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import { DEFAULTS } from './defaults.ts';
import { type ExecutionPolicy, isMovable, POLICY_NAMES, type PolicyName } from './execution-policy.ts';
import { OUTPUT_PROFILES, TIMEOUT_PROFILES } from './output-profiles.ts';
import { type RunOptionsInput, runOptionsSchema } from './run-options.ts';
import { type ResolvedSessionSpec, sessionSpecSchema } from './session.ts';
import type { SessionSpec } from './session-spec.ts';

describe('the spec of a session', () => {
  test('has the declared types, where a policy is a name or an object of options', () => {
    expectTypeOf<z.input<typeof sessionSpecSchema>>().toEqualTypeOf<SessionSpec>();
    expectTypeOf<z.input<typeof runOptionsSchema>>().toEqualTypeOf<RunOptionsInput>();
    expectTypeOf<SessionSpec['policy']>().toEqualTypeOf<PolicyName | ExecutionPolicy | undefined>();
    // @ts-expect-error: an option of another policy
    const wrong: SessionSpec = { policy: { type: 'host', readOnlyRootfs: true } };
    expect(sessionSpecSchema.safeParse(wrong).error?.issues[0]?.path).toEqual(['policy']);
  });

  test('takes an object as an open stdin, and the text `open` as data', () => {
    expect(runOptionsSchema.parse({ stdin: 'open' }).stdin).toBe('open');
    expect(runOptionsSchema.parse({ stdin: { open: true } }).stdin).toEqual({ open: true });
    expect(runOptionsSchema.safeParse({ stdin: { open: false } }).error?.issues[0]?.message).toBe(
      'must be a string, bytes, an iterable of them, or { open: true }',
    );
  });

  const timesOf = ({ commandTimeoutMs, startupTimeoutMs, terminationTimeoutMs }: ResolvedSessionSpec) => ({
    ...{ commandTimeoutMs, startupTimeoutMs, terminationTimeoutMs },
  });

  // S2-03
  test('gives a command 10 minutes, a start 30 s and an end 10 s', () => {
    expect(timesOf(sessionSpecSchema.parse({}))).toEqual({
      commandTimeoutMs: 600_000,
      startupTimeoutMs: 30_000,
      terminationTimeoutMs: 10_000,
    });
  });

  // S2-03
  test('gives a command 10 s under the profile codex', () => {
    const { commandTimeoutMs } = sessionSpecSchema.parse(TIMEOUT_PROFILES.codex);
    expect(commandTimeoutMs).toBe(10_000);
  });

  test('takes every default from the table, also for an undefined field', () => {
    const { policy, user: _user, ...session } = DEFAULTS.session;
    const { limits, output } = DEFAULTS;
    const expected = { policy: { type: policy, readOnlyRootfs: false }, ...session, limits, output };
    expect(sessionSpecSchema.parse({})).toEqual(expected);
    const absent = Object.fromEntries([...Object.keys(expected), 'image', 'user'].map((field) => [field, undefined]));
    expect(sessionSpecSchema.parse(absent)).toEqual(expected);
  });

  // S0-05
  test('has the time and output limits of LangChain under the profile langchain', () => {
    expect(timesOf(sessionSpecSchema.parse(TIMEOUT_PROFILES.langchain))).toEqual({
      commandTimeoutMs: 30_000,
      startupTimeoutMs: 30_000,
      terminationTimeoutMs: 10_000,
    });
    const { output } = sessionSpecSchema.parse({ output: OUTPUT_PROFILES.langchain });
    // The largest bound that a session may ask for.
    expect(output).toMatchObject({ maxLines: 100, maxBytes: 1_048_576 });
    const refused = sessionSpecSchema.safeParse({ output: { maxBytes: 1_048_577 } });
    expect(refused.error?.issues[0]?.message).toBe('must be at most 1048576');
  });

  test.each([
    [{}, undefined],
    [{ team: 'build', 'example.org/arch': 'arm64', n: '1' }, undefined],
    [{ team: '' }, 'must have a name and a value of 1 to 63'],
    [{ team: 'a b' }, 'must have a name and a value of 1 to 63'],
    [{ team: 'x'.repeat(64) }, 'must have a name and a value of 1 to 63'],
    [{ '-team': 'build' }, 'must have a name and a value of 1 to 63'],
    [Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`label${n}`, 'x'])), 'holds 33 labels; the limit is 32'],
  ])('takes at most 32 labels with short names and values: %j', (labels, refusal) => {
    const { success, error } = sessionSpecSchema.safeParse({ labels });
    expect(success).toBe(refusal === undefined);
    if (refusal !== undefined) expect(error?.message).toContain(refusal);
  });

  test.each([
    ['/srv/w', '/srv/w'],
    [{ path: '/srv/w' }, '/srv/w'],
    [{ path: '/srv/w', target: '/workspace' as const, readOnly: false }, '/srv/w'],
    [
      { path: '/srv/w', target: '/workspace' as const, readOnly: true },
      { path: '/srv/w', readOnly: true },
    ],
  ])('parses equal workspaces to one form, which parses to itself: %j', (given, resolved) => {
    const { workspace } = sessionSpecSchema.parse({ workspace: given });
    expect(workspace).toEqual(resolved);
    expect(sessionSpecSchema.parse({ workspace }).workspace).toEqual(resolved);
  });

  test.each([
    '/',
    '/usr/local',
    '/etc/../srv',
    '/srv//w',
    '/var',
    '/run/w',
    '/.shellfleet',
    '/.shellfleet-run/w',
    '/tmp/',
    '/workspace/w',
    'w',
  ])('mounts no workspace at %s', (target) => {
    const { error } = sessionSpecSchema.safeParse({ workspace: { path: '/w', target } });
    expect(error?.issues.map(({ path }) => path[0])).toEqual(['workspace']);
  });

  // S0-41
  test('can mount a workspace at its path on the host, where the shell then starts', () => {
    const workspace = { path: '/srv/w', target: '/srv/w' };
    expect(sessionSpecSchema.parse({ workspace })).toMatchObject({ workspace, cwd: '/srv/w' });
    expect(sessionSpecSchema.parse({ workspace, cwd: '/tmp' })).toMatchObject({ cwd: '/tmp' });
    expect(sessionSpecSchema.parse({ workspace: '/srv/w' })).toMatchObject({ cwd: '/workspace' });
    const { error } = sessionSpecSchema.safeParse({ policy: 'host', workspace });
    expect(error?.issues.map(({ message }) => message)).toEqual(['can only be at /workspace under the host policy']);
  });

  test.each(['w', { path: 'w' }, { path: '/w', target: '/etc' }, { path: '/w', writable: true }, 7])(
    'refuses the workspace %j',
    (workspace) => {
      const { error } = sessionSpecSchema.safeParse({ workspace });
      expect(error?.issues.map(({ path }) => path[0])).toEqual(['workspace']);
    },
  );

  // S0-12
  test('is checked for general mistakes before the mistakes that one policy defines', () => {
    const refused = (spec: object) =>
      sessionSpecSchema.safeParse({ policy: 'host', image: 'alpine', ...spec }).error?.issues.map(({ path }) => path);
    expect(refused({ output: { maxLines: 0 }, limits: { memoryBytes: 0 } })).toEqual([
      ['output', 'maxLines'],
      ['limits', 'memoryBytes'],
    ]);
    expect(refused({ output: { maxLines: 0 } })).toEqual([['output', 'maxLines'], ['image']]);
    expect(refused({})).toEqual([['image']]);
  });

  test.each([
    [{ workspace: '/srv/w' }, 'workspace', 'a Pod has only the workspace'],
    [{ user: 'root' }, 'user', 'both above 0'],
    [{ user: '0:1000' }, 'user', 'both above 0'],
    [{ user: '1000:0' }, 'user', 'both above 0'],
    [{ user: 'image' }, 'user', 'both above 0'],
    [{ keepOnFailure: true }, 'keepOnFailure', 'an ended Pod is deleted'],
    [{ cwd: 'image' }, 'cwd', 'is no absolute path'],
    [{ sandbox: { mode: 'external' } }, 'sandbox.mode', 'makes a sandbox of its own'],
  ])('refuses %j in a Pod', (spec, path, message) => {
    const { error } = sessionSpecSchema.safeParse({ policy: 'kubernetes', ...spec });
    expect(error?.issues).toMatchObject([{ path: path.split('.'), message: expect.stringContaining(message) }]);
  });

  test('of a Pod has an image, a uid and usual limits but for processes', () => {
    const spec = { policy: 'kubernetes', image: 'alpine:3', user: '1234:5678' } as const;
    const { memoryBytes, cpus } = DEFAULTS.limits;
    expect(sessionSpecSchema.parse(spec)).toMatchObject({ image: 'alpine:3', user: '1234:5678' });
    expect(sessionSpecSchema.parse(spec).limits).toEqual({ memoryBytes, cpus, pids: undefined });
    expect(sessionSpecSchema.parse({ ...spec, limits: { pids: 64 } }).limits).toMatchObject({ pids: 64 });
  });

  test.each(['docker', 'host', 'bubblewrap', 'codex'] as const)('has no resources of a cluster under %s', (policy) => {
    const { error } = sessionSpecSchema.safeParse({ policy, limits: { resources: { 'nvidia.com/gpu': 1 } } });
    expect(error?.issues).toMatchObject([
      { path: ['limits', 'resources'], message: expect.stringContaining(`which the ${policy} policy does not have`) },
    ]);
  });

  test.each([
    ['cpu', 1],
    ['nvidia.com/', 1],
    ['nvidia.com/gpu', 0],
    ['nvidia.com/gpu', 0.5],
    ['nvidia.com/gpu', 1_025],
  ])('refuses the resource %s = %s', (name, count) => {
    const { error } = sessionSpecSchema.safeParse({ policy: 'kubernetes', limits: { resources: { [name]: count } } });
    expect(error?.issues.map(({ path }) => path)).toEqual([['limits', 'resources', name]]);
  });

  test('moves from worker to worker only under the policy kubernetes', () => {
    expect(POLICY_NAMES.filter(isMovable)).toEqual(['kubernetes']);
  });

  test('stores negative zero as zero', () => {
    const { hostGraceMs, priority } = sessionSpecSchema.parse({ hostGraceMs: -0, priority: -0 });
    expect([hostGraceMs, priority]).toEqual([0, 0]);
  });
});
