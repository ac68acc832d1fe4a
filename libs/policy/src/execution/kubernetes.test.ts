import { isShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { cluster } from '../../test-support/cluster-settings.ts';
import { type ClusterSettings, type KubernetesAllowances, planKubernetes } from './kubernetes.ts';

const GIB = 2 ** 30;
const allowances: KubernetesAllowances = { images: 'any', defaultImage: 'registry.example/session:1', cluster };

function plan(spec: object, settings: Partial<ClusterSettings> = {}, more: Partial<KubernetesAllowances> = {}) {
  const parsed = sessionSpecSchema.parse({ policy: 'kubernetes', ...spec });
  return planKubernetes(parsed, { ...allowances, ...more, cluster: { ...cluster, ...settings } });
}

function refusalOf(...args: Parameters<typeof plan>) {
  try {
    plan(...args);
  } catch (error) {
    if (isShellfleetError(error)) return { code: error.code, issues: error.context.issues };
    throw error;
  }
  return undefined;
}

describe('planKubernetes', () => {
  test('turns an empty spec into the unprivileged default', () => {
    expect(plan({})).toEqual({
      image: 'registry.example/session:1',
      user: { uid: 1000, gid: 1000 },
      readOnlyRootfs: false,
      readOnlyWorkspace: false,
      network: 'restricted',
      allowedHosts: [],
      cwd: '/workspace',
      shell: [],
      runtimeClass: undefined,
      limits: {
        memoryBytes: 512 * 2 ** 20,
        cpus: 1,
        pids: undefined,
        ephemeralStorageBytes: 4 * GIB,
        resources: {},
      },
      deadlineMs: 2 * 86_400_000 + 10_000,
      cluster,
    });
  });

  test('takes from a spec what the operator allows', () => {
    const policy = { type: 'kubernetes', runtimeClass: 'gvisor', readOnlyRootfs: true };
    const limits = { memoryBytes: GIB, cpus: 0.5, pids: 512, diskBytes: GIB, resources: { 'nvidia.com/gpu': 2 } };
    const spec = { policy, limits, image: 'debian:12', user: '7:8', shell: ['/bin/sh'], maxLifetimeMs: 1_000 };
    const settings = { runtimeClasses: ['gvisor'], resources: ['nvidia.com/gpu'], podPidsLimit: 512 };
    const { diskBytes, ...others } = limits;
    expect(plan(spec, settings)).toMatchObject({
      ...{ image: 'debian:12', user: { uid: 7, gid: 8 }, shell: ['/bin/sh'], runtimeClass: 'gvisor' },
      ...{ readOnlyRootfs: true, readOnlyWorkspace: false, deadlineMs: 86_400_000 + 11_000 },
      limits: { ...others, ephemeralStorageBytes: diskBytes },
    });
  });

  test('makes root and workspace read-only in the mode read-only', () => {
    const readOnly = { readOnlyRootfs: true, readOnlyWorkspace: true };
    expect(plan({ sandbox: { mode: 'read-only' } })).toMatchObject(readOnly);
  });

  test('accepts a limit of processes that nobody enforces if the operator does', () => {
    expect(plan({ limits: { pids: 64 } }, { unenforced: ['pids'] }).limits.pids).toBe(64);
  });

  test('gives the network `limited` where the fleet has an egress proxy', () => {
    const sandbox = { network: 'limited' };
    const allowed = { sandbox: { modes: [], networks: ['limited' as const], hosts: [] } };
    expect(plan({ sandbox }, { egress: { host: 'egress', port: 3128 } }, allowed).network).toBe('limited');
    expect(refusalOf({ sandbox }, {}, allowed)?.issues).toMatchObject([
      { path: 'sandbox.network', message: expect.stringMatching(/no egress proxy.*setting: egress of the section/) },
    ]);
  });

  test('refuses more names than the head of a request has room for', () => {
    const allowedHosts = Array.from({ length: 100 }, (_, index) => `${'a'.repeat(60)}.n${index}.example.org`);
    const allowed = { sandbox: { modes: [], networks: ['limited' as const], hosts: ['*.example.org'] } };
    const spec = { sandbox: { network: 'limited', allowedHosts } };
    expect(refusalOf(spec, { egress: { host: 'egress', port: 3128 } }, allowed)?.issues).toEqual([
      { path: 'sandbox.allowedHosts', message: expect.stringContaining('the proxy of Pods takes 7000') },
    ]);
  });

  test.each([
    [{ limits: { cpuTimeSeconds: 10 } }, {}, 'limits.cpuTimeSeconds', /cannot bound CPU seconds/],
    [{ limits: { fileSizeBytes: GIB } }, {}, 'limits.fileSizeBytes', /cannot bound the size of a file/],
    [{ limits: { pids: 256 } }, {}, 'limits.pids', /256.*names none.*podPidsLimit or unenforced/],
    [{ limits: { pids: 256 } }, { podPidsLimit: 257 }, 'limits.pids', /256.*which is 257 here/],
    [
      { limits: { resources: { 'amd.com/gpu': 1 } } },
      { resources: ['nvidia.com/gpu'] },
      'limits.resources',
      /amd\.com\/gpu is not among.*nvidia\.com\/gpu.*resources of the section kubernetes in SHELLFLEET_CONFIG/,
    ],
    [
      { policy: { type: 'kubernetes', runtimeClass: 'kata' } },
      {},
      'policy.runtimeClass',
      /kata is not among.*none.*runtimeClasses of the section/,
    ],
    [{ sandbox: { network: 'full' } }, {}, 'sandbox.network', /does not allow 'full'/],
    [{ sandbox: { mode: 'danger-full-access' } }, {}, 'sandbox.mode', /does not allow 'danger-full-access'/],
    [{ cwd: '/proc/self/fd/8' }, {}, 'cwd', /ordinary directory/],
    [{ redactFormats: false }, {}, 'redactFormats', /SHELLFLEET_ALLOW_UNREDACTED/],
  ])('refuses %j with the settings %j', (spec, settings, path, message) => {
    expect(refusalOf(spec, settings)).toEqual({
      code: 'SANDBOX_UNAVAILABLE',
      issues: [{ path, message: expect.stringMatching(message) }],
    });
  });

  test('refuses an image that the operator does not list, but not the default one', () => {
    const listed = { images: ['registry.example/tools'] };
    expect(refusalOf({ image: 'debian:12' }, {}, listed)?.issues).toMatchObject([
      { path: 'image', message: expect.stringContaining('SHELLFLEET_IMAGES') },
    ]);
    expect(plan({ image: 'registry.example/session:1' }, {}, listed).image).toBe('registry.example/session:1');
    expect(plan({ image: 'registry.example/tools:2' }, {}, listed).image).toBe('registry.example/tools:2');
  });
});
