import { isShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { type HostAllowances, planHost } from './host.ts';

const MIB = 2 ** 20;
const allowances: HostAllowances = {
  workspaces: ['/srv/projects'],
  bounds: { memoryBytes: 8192 * MIB, cpus: 4, pids: 4096, diskQuota: false },
  controlGroups: true,
};
const without = { controlGroups: false };

function plan(spec: object, more: Partial<HostAllowances> = {}) {
  return planHost(sessionSpecSchema.parse({ policy: 'host', ...spec }), { ...allowances, ...more });
}

function refusalOf(spec: object, more: Partial<HostAllowances> = {}) {
  try {
    plan(spec, more);
  } catch (error) {
    if (isShellfleetError(error)) return { code: error.code, issues: error.context.issues };
    throw error;
  }
  return undefined;
}

describe('planHost', () => {
  test('gives a session without limits the default limits, as one control group', () => {
    expect(plan({})).toEqual({
      workspace: undefined,
      group: { memoryBytes: 512 * MIB, cpus: 1, pids: 256 },
      process: { addressSpaceBytes: undefined, cpuTimeSeconds: undefined },
    });
  });

  // The schema refuses sandboxes that the policy cannot enforce. sandbox-modes.test.ts has the tests of that.
  test('allows the mode external and the full network, though the operator lists neither', () => {
    expect(plan({ sandbox: { mode: 'external', network: 'full' } })).toEqual(plan({}));
  });

  // S0-04, S0-09, S0-15
  test('sets no limit by default on a host without control groups', () => {
    expect(plan({}, without)).toEqual({
      workspace: undefined,
      group: undefined,
      process: { addressSpaceBytes: undefined, cpuTimeSeconds: undefined },
    });
  });

  // S0-14, S0-18
  test('limits memory per process on a host without control groups, and CPU seconds everywhere', () => {
    const limits = { memoryBytes: 64 * MIB, cpuTimeSeconds: 7 };
    expect(plan({ limits }, without).process).toEqual({ addressSpaceBytes: 64 * MIB, cpuTimeSeconds: 7 });
    expect(plan({ limits })).toEqual({
      workspace: undefined,
      group: { memoryBytes: 64 * MIB, cpus: 1, pids: 256 },
      process: { addressSpaceBytes: undefined, cpuTimeSeconds: 7 },
    });
  });

  test.each([
    ['S0-19: cpus without control groups', { limits: { cpus: 1 } }, without, 'limits.cpus', /no control group/],
    ['S0-19: pids without control groups', { limits: { pids: 256 } }, without, 'limits.pids', /no control group/],
    ['a disk limit', { limits: { diskBytes: MIB } }, {}, 'limits.diskBytes', /cannot bound the disk/],
    ['more cpus than the host', { limits: { cpus: 5 } }, {}, 'limits.cpus', /asks for 5.*has 4/],
    ['more memory than the host', { limits: { memoryBytes: 2 ** 40 } }, without, 'limits.memoryBytes', /asks for/],
    ['a workspace that nobody allowed', { workspace: '/srv/other' }, {}, 'workspace', /lets sessions mount/],
    ['a way out of an allowed one', { workspace: '/srv/projects/../x' }, {}, 'workspace', /lets sessions mount/],
    ['a cwd that is a descriptor', { cwd: '/proc/self/fd/8' }, {}, 'cwd', /ordinary directory/],
  ])('refuses %s, with the path of the field', (_title, spec, more, path, message) => {
    expect(refusalOf(spec, more)).toEqual({
      code: 'SANDBOX_UNAVAILABLE',
      issues: [{ path, message: expect.stringMatching(message) }],
    });
  });
});

describe('the spec of a session under the policy host', () => {
  test.each([
    ['an image', { image: 'debian:12' }, ['image']],
    ['a user', { user: '1000' }, ['user']],
    ['a read-only workspace', { workspace: { path: '/srv/projects', readOnly: true } }, ['workspace']],
    ['an option of another policy', { policy: { type: 'host', readOnlyRootfs: true } }, ['policy']],
  ])('refuses %s', (_title, spec, path) => {
    const issues = sessionSpecSchema.safeParse({ policy: 'host', ...spec }).error?.issues;
    expect(issues?.map((issue) => issue.path)).toEqual([path]);
  });

  test('keeps unset limits unset, while the policy docker fills in defaults', () => {
    expect(sessionSpecSchema.parse({ policy: 'host' }).limits).toEqual({});
    expect(sessionSpecSchema.parse({ policy: 'host', limits: { pids: 256 } }).limits).toEqual({ pids: 256 });
    expect(sessionSpecSchema.parse({}).limits).toEqual({ memoryBytes: 512 * MIB, cpus: 1, pids: 256 });
    expect(sessionSpecSchema.parse({ limits: { cpus: 2 } })).toEqual(
      sessionSpecSchema.parse({ limits: { memoryBytes: 512 * MIB, cpus: 2, pids: 256 } }),
    );
  });

  test('stays the same when it is parsed again', () => {
    for (const given of [{ policy: 'host' }, { policy: 'host', limits: { cpus: 2 } }, {}]) {
      const spec = sessionSpecSchema.parse(given);
      expect(sessionSpecSchema.parse(JSON.parse(JSON.stringify(spec)))).toEqual(spec);
    }
  });
});
