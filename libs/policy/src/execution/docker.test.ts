import { isShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { type DockerAllowances, planDocker } from './docker.ts';
import { SESSION_IMAGES } from './session-images.ts';

const GIB = 2 ** 30;
const allowances: DockerAllowances = {
  images: 'any',
  defaultImage: 'shellfleet/session:1',
  users: [],
  workspaces: [],
  bounds: { memoryBytes: 8 * GIB, cpus: 4, pids: 4096, diskQuota: false },
};

function plan(spec: object, more: Partial<DockerAllowances> = {}) {
  return planDocker(sessionSpecSchema.parse(spec), { ...allowances, ...more });
}

function refusalOf(spec: object, more: Partial<DockerAllowances> = {}) {
  try {
    plan(spec, more);
  } catch (error) {
    if (isShellfleetError(error)) return { code: error.code, issues: error.context.issues };
    throw error;
  }
  return undefined;
}

describe('planDocker', () => {
  // S0-31, S0-42
  test('turns an empty spec into the unprivileged default', () => {
    expect(plan({})).toEqual({
      image: 'shellfleet/session:1',
      user: '1000:1000',
      owner: { uid: 1000, gid: 1000 },
      readOnlyRootfs: false,
      workspace: undefined,
      readOnlyWorkspace: false,
      network: 'restricted',
      cwd: '/workspace',
      limits: { memoryBytes: 512 * 2 ** 20, cpus: 1, pids: 256, diskBytes: undefined },
    });
  });

  test('takes the image of the spec, else full if the host has it, else slim', () => {
    const full = { defaultImage: 'full', images: [] };
    expect(plan({}, full)).toMatchObject({
      image: 'shellfleet/session:full',
      otherwiseImage: 'shellfleet/session:slim',
    });
    for (const [image, whole] of Object.entries(SESSION_IMAGES)) {
      const named = plan({ image }, full);
      expect([named.image, named.otherwiseImage]).toEqual([whole, undefined]);
    }
    expect(plan({}, { defaultImage: 'slim' })).toMatchObject({ image: 'shellfleet/session:slim' });
    expect(refusalOf({ image: 'full' }, { defaultImage: 'slim', images: ['node:24'] })?.issues).toEqual([
      {
        path: 'image',
        message:
          "shellfleet/session:full is not on this host's list of images (its operator's setting: SHELLFLEET_IMAGES)",
      },
    ]);
    expect(plan({ image: 'full' }, { defaultImage: 'slim', images: ['full'] }).image).toBe('shellfleet/session:full');
  });

  // S3-15, S3-31
  test('makes root and workspace read-only in the mode read-only, and neither in other modes', () => {
    const closed = { readOnlyRootfs: true, readOnlyWorkspace: true };
    const sandbox = { mode: 'read-only' };
    expect(plan({ sandbox })).toMatchObject({ ...closed, workspace: undefined });
    expect(plan({ sandbox, workspace: '/srv/a' }, { workspaces: ['/srv'] })).toMatchObject({
      ...closed,
      workspace: { path: '/srv/a', readOnly: true },
    });
    for (const mode of ['workspace-write', 'danger-full-access'] as const)
      expect(plan({ sandbox: { mode } }, { sandbox: { modes: [mode], networks: [], hosts: [] } })).toMatchObject({
        readOnlyRootfs: false,
        readOnlyWorkspace: false,
      });
  });

  test('gives the requested network if the operator lists it, and never another', () => {
    const sandbox = { network: 'full' };
    expect(plan({ sandbox }, { sandbox: { modes: [], networks: ['full'], hosts: [] } }).network).toBe('full');
    expect(refusalOf({ sandbox })).toEqual({
      code: 'SANDBOX_UNAVAILABLE',
      issues: [
        {
          path: 'sandbox.network',
          message:
            "this host does not allow 'full'; it allows 'restricted' (its operator's setting: allow.networks of SHELLFLEET_CONFIG)",
        },
      ],
    });
  });

  test('refuses a numeric user where each session has its own uid, except listed users', () => {
    expect(refusalOf({ user: '1000:1000' }, { ownUids: true })).toEqual({
      code: 'SANDBOX_UNAVAILABLE',
      issues: [{ path: 'user', message: expect.stringContaining('a uid of its own') }],
    });
    expect(refusalOf({ user: 'root' }, { ownUids: true })?.issues).toEqual([
      { path: 'user', message: expect.stringContaining('does not allow root') },
    ]);
    expect(plan({ user: 'root' }, { ownUids: true, users: ['root'] }).user).toBe('root');
    expect(refusalOf({}, { ownUids: true })).toBe(undefined);
  });

  test.each([
    [
      '42: more memory than the host',
      { limits: { memoryBytes: 16 * GIB } },
      'limits.memoryBytes',
      /17179869184.*8589934592/,
    ],
    ['43: more cpus than the host', { limits: { cpus: 5 } }, 'limits.cpus', /asks for 5.*has 4/],
    ['more processes than the host gives', { limits: { pids: 5000 } }, 'limits.pids', /5000.*4096/],
    ['a disk limit where no quota is', { limits: { diskBytes: GIB } }, 'limits.diskBytes', /cannot bound/],
    ['S0-33: a limit on CPU seconds', { limits: { cpuTimeSeconds: 10 } }, 'limits.cpuTimeSeconds', /limits\.cpus/],
    ['44: root by name', { user: 'root' }, 'user', /does not allow root/],
    ['44: root by number', { user: '0:0' }, 'user', /does not allow root/],
    ['44: root with leading zeros', { user: '000' }, 'user', /does not allow root/],
    ['the group of root', { user: '1000:0' }, 'user', /does not allow root/],
    ['a name, which may mean uid 0', { user: 'node' }, 'user', /by name/],
    ["the image's own user", { user: 'image' }, 'user', /by name/],
    ['34: a cwd that is a descriptor', { cwd: '//proc/self/fd/8' }, 'cwd', /ordinary directory/],
    ['a workspace that nobody allowed', { workspace: '/srv/project' }, 'workspace', /lets sessions mount/],
  ])('refuses %s', (_title, spec, path, message) => {
    expect(refusalOf(spec)).toEqual({
      code: 'SANDBOX_UNAVAILABLE',
      issues: [{ path, message: expect.stringMatching(message) }],
    });
  });

  test('reports all refused fields at once', () => {
    const refused = refusalOf({ user: 'root', limits: { cpus: 5, memoryBytes: 16 * GIB } });
    expect(refused?.issues).toHaveLength(3);
  });

  test('allows root and the user of the image only where the operator has listed them', () => {
    expect(plan({ user: 'root' }, { users: ['root'] }).user).toBe('root');
    expect(plan({ user: 'image' }, { users: ['image'] }).user).toBeUndefined();
    expect(refusalOf({ user: 'root' }, { users: ['image'] })?.code).toBe('SANDBOX_UNAVAILABLE');
  });

  test("gives a uid without a group the group of the same number, never root's", () => {
    expect(plan({ user: '1234' })).toMatchObject({ user: '1234:1234', owner: { uid: 1234, gid: 1234 } });
  });

  test.each([
    ['/srv/work', true],
    ['/srv/work/a/b', true],
    ['/srv/workshop', false],
    ['/srv', false],
    ['/srv/work/../secret', false],
  ])('decides about a mount of %s: allowed is %s', (workspace, isAllowed) => {
    expect(refusalOf({ workspace }, { workspaces: ['/srv/work/'] }) === undefined).toBe(isAllowed);
  });

  test('does not count a workspace list of "/" as the whole host', () => {
    expect(refusalOf({ workspace: '/etc' }, { workspaces: ['/'] })?.code).toBe('SANDBOX_UNAVAILABLE');
  });

  test.each([
    ['debian:12', ['debian'], true],
    ['debian:12', ['debian:12'], true],
    ['debian:13', ['debian:12'], false],
    ['registry.example:5000/team/tools:3', ['registry.example:5000/team/'], true],
    ['registry.example:5000/team/tools:3', ['registry.example:5000/team/tools'], true],
    ['registry.example:5000/teammate/tools', ['registry.example:5000/team/'], false],
    ['shellfleet/session:1', [], true],
  ])('decides about the image %s under the list %j: allowed is %s', (image, images, isAllowed) => {
    expect(refusalOf({ image }, { images }) === undefined).toBe(isAllowed);
  });
});

describe('the schema of a session spec', () => {
  test.each([
    ['40', { image: '--privileged' }, 'image'],
    ['40', { image: 'debian; rm' }, 'image'],
    ['40', { image: 'debian 12' }, 'image'],
    ['40', { image: 'debian@sha256:12' }, 'image'],
    ['41', { policy: { type: 'docker', binds: ['/:/host'] } }, 'policy'],
    ['41', { policy: { type: 'docker', privileged: true } }, 'policy'],
    ['42', { limits: { memoryBytes: '512mb!' } }, 'limits'],
    ['42', { limits: { memoryBytes: 0 } }, 'limits'],
    ['42', { limits: { memoryBytes: -1 } }, 'limits'],
    ['42', { limits: { memoryBytes: 32 * 2 ** 20 - 1 } }, 'limits'],
    ['43', { limits: { cpus: '' } }, 'limits'],
    ['43', { limits: { cpus: 0 } }, 'limits'],
    ['43', { limits: { cpus: 1e9 } }, 'limits'],
    ['44', { user: '' }, 'user'],
    ['44', { user: 'x;y' }, 'user'],
  ])('case %s: refuses %j with the path of the field', (_row, spec, field) => {
    const parsed = sessionSpecSchema.safeParse(spec);
    expect(parsed.error?.issues[0]?.path[0]).toBe(field);
  });
});
