import type { Examination } from '@shellfleet/keeper';
import { describe, expect, test } from 'vitest';
import { type ExpectedInPod, judgeExamination } from './judge.ts';

const API = '10.96.0.1:443';

const enforced: Examination = {
  uidMap: [{ inside: 0, outside: 65_536, count: 65_536 }],
  effectiveCapabilities: 0n,
  boundingCapabilities: 0n,
  noNewPrivs: true,
  seccomp: 2,
  cgroup: 2,
  memoryMaxBytes: 536_870_912,
  pidsMax: 256,
  oomGroup: true,
  execWorkspace: true,
  probes: new Map([[API, 'timeout']]),
};
const expected: ExpectedInPod = {
  memoryBytes: 536_870_912,
  pids: 256,
  userNamespaces: true,
  probes: [API],
  unenforced: [],
};
const ALL = ['network', 'pids', 'memory', 'seccomp', 'noNewPrivs', 'userNamespaces', 'exec'];
const UNLIMITED = Number.POSITIVE_INFINITY;

const without = (name: keyof Examination) => {
  const { [name]: _, ...others } = enforced;
  return others as Examination;
};

describe('the judgement about a Pod', () => {
  test('accepts one in which everything is in force', () => {
    expect(judgeExamination(enforced, expected)).toEqual([]);
  });

  test.each<[string, string, Partial<Examination>, string, string | undefined]>([
    ['has capabilities', 'policy', { effectiveCapabilities: 1n }, 'capabilities', undefined],
    ['can get capabilities', 'policy', { boundingCapabilities: 0x20n }, 'capabilities', undefined],
    ['can gain privileges', 'policy', { noNewPrivs: false }, 'allowPrivilegeEscalation', undefined],
    ['has no filter', 'policy', { seccomp: 0 }, 'RuntimeDefault', 'seccomp'],
    [
      'has the users of its node',
      'policy',
      { uidMap: [{ inside: 0, outside: 0, count: 2 ** 32 - 1 }] },
      'containerd 2.0',
      'userNamespaces',
    ],
    [
      'shares one user with its node',
      'policy',
      {
        uidMap: [
          { inside: 0, outside: 65_536, count: 1_000 },
          { inside: 1_000, outside: 1_000, count: 1 },
        ],
      },
      'containerd 2.0',
      'userNamespaces',
    ],
    ['has any memory', 'limits.memoryBytes', { memoryMaxBytes: UNLIMITED }, 'has no limit', 'memory'],
    ['has more memory', 'limits.memoryBytes', { memoryMaxBytes: 536_870_913 }, 'a limit of 536870913', 'memory'],
    ['has any number of processes', 'limits.pids', { pidsMax: UNLIMITED }, 'podPidsLimit of the kubelets', 'pids'],
    ['has more processes', 'limits.pids', { pidsMax: 257 }, 'a limit of 257', 'pids'],
    ['cannot execute in its workspace', 'workspace', { execWorkspace: false }, 'noexec', 'exec'],
    ['reaches the API server', 'sandbox.network', { probes: new Map([[API, 'connected']]) }, API, 'network'],
    ['was not tried', 'sandbox.network', { probes: new Map() }, 'could not try', 'network'],
    ['could not be tried', 'sandbox.network', { probes: new Map([[API, 'failed']]) }, 'could not try', 'network'],
  ])('refuses one that %s, unless its operator accepts that', (_, path, change, words, property) => {
    const found = { ...enforced, ...change };
    const issues = judgeExamination(found, expected);
    expect(issues).toEqual([{ path, message: expect.stringContaining(words) }]);
    if (property !== undefined)
      expect(issues[0]?.message).toContain(
        `unenforced: ['${property}'] of the section kubernetes in SHELLFLEET_CONFIG`,
      );
    const accepting = { ...expected, unenforced: ALL };
    expect(judgeExamination(found, accepting)).toEqual(property === undefined ? issues : []);
  });

  test.each<keyof Examination>([
    'uidMap',
    'effectiveCapabilities',
    'boundingCapabilities',
    'noNewPrivs',
    'seccomp',
    'memoryMaxBytes',
    'pidsMax',
    'execWorkspace',
  ])('refuses one whose keeper could not read %s', (name) => {
    expect(judgeExamination(without(name), expected)).toHaveLength(1);
  });

  test('accepts a runtime that tells nothing of privileges, where the operator accepts that', () => {
    const [issue] = judgeExamination(without('noNewPrivs'), expected);
    expect(issue?.message).toContain("unenforced: ['noNewPrivs']");
    expect(judgeExamination(without('noNewPrivs'), { ...expected, unenforced: ['noNewPrivs'] })).toEqual([]);
  });

  test.each(['refused', 'unreachable', 'timeout'] as const)('accepts an address that is out of reach: %s', (result) => {
    expect(judgeExamination({ ...enforced, probes: new Map([[API, result]]) }, expected)).toEqual([]);
  });

  test('asks for nothing that the session and the operator did not ask for', () => {
    const found: Examination = {
      ...enforced,
      uidMap: [{ inside: 0, outside: 0, count: 2 ** 32 - 1 }],
      pidsMax: UNLIMITED,
    };
    expect(judgeExamination(found, { ...expected, pids: undefined, userNamespaces: false })).toEqual([]);
  });

  test('believes the operator about the limit of kubelets while none is in sight', () => {
    const found = { ...enforced, pidsMax: UNLIMITED };
    expect(judgeExamination(found, { ...expected, podPidsLimit: 256 })).toEqual([]);
    expect(judgeExamination(found, { ...expected, podPidsLimit: 257 })).toHaveLength(1);
    expect(judgeExamination({ ...enforced, pidsMax: 1_024 }, { ...expected, podPidsLimit: 256 })).toHaveLength(1);
  });

  test('names every shortfall of one that enforces nothing', () => {
    const issues = judgeExamination({ probes: new Map() }, expected);
    expect(issues.map(({ path }) => path)).toEqual([
      ...['policy', 'policy', 'policy', 'policy'],
      ...['limits.memoryBytes', 'limits.pids', 'workspace', 'sandbox.network'],
    ]);
  });
});
