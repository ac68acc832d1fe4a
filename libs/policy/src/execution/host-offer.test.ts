import { type HostOffer, hostOfferSchema, type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { refusedByOffer } from './host-offer.ts';

const GIB = 2 ** 30;
const refused = (spec: SessionSpec, offer: Partial<HostOffer>) =>
  refusedByOffer(sessionSpecSchema.parse(spec), { ...hostOfferSchema.parse({}), ...offer }, 'slim').map(
    ({ path, message }) => [path, /its operator's setting: (.*)\)$/.exec(message)?.[1]],
  );
const CLUSTER = { runtimeClasses: [], resources: [], unenforced: [], egress: false };
const limited = { sandbox: { network: 'limited' as const, allowedHosts: ['a.example.org'] } };

describe('the offer of a host', () => {
  test.each<[SessionSpec, Partial<HostOffer>, string, string | undefined]>([
    [{ user: 'root' }, { users: ['root'] }, 'user', 'SHELLFLEET_USERS, or allow.users of SHELLFLEET_CONFIG'],
    [{ user: 'image' }, { users: ['image'] }, 'user', 'SHELLFLEET_USERS, or allow.users of SHELLFLEET_CONFIG'],
    [{ workspace: '/srv/a/b' }, { workspaces: ['/srv/a'] }, 'workspace', 'SHELLFLEET_WORKSPACES'],
    [{ policy: 'host', workspace: '/srv/a' }, { workspaces: ['/srv'] }, 'workspace', 'SHELLFLEET_WORKSPACES'],
    [
      { policy: { type: 'docker', runtime: 'kata' } },
      { runtimes: ['kata'] },
      'policy.runtime',
      'allow.runtimes of SHELLFLEET_CONFIG',
    ],
    [
      { sandbox: { mode: 'danger-full-access' } },
      { modes: ['danger-full-access'] },
      'sandbox.mode',
      'allow.modes of SHELLFLEET_CONFIG',
    ],
    [
      { sandbox: { network: 'full' } },
      { networks: ['full'] },
      'sandbox.network',
      'allow.networks of SHELLFLEET_CONFIG',
    ],
    [
      { policy: 'kubernetes', limits: { resources: { 'nvidia.com/gpu': 1 } } },
      { cluster: { ...CLUSTER, resources: ['nvidia.com/gpu'] } },
      'limits.resources',
      'resources of the section kubernetes in SHELLFLEET_CONFIG',
    ],
    [
      { policy: { type: 'kubernetes', runtimeClass: 'gvisor' } },
      { cluster: { ...CLUSTER, runtimeClasses: ['gvisor'] } },
      'policy.runtimeClass',
      'runtimeClasses of the section kubernetes in SHELLFLEET_CONFIG',
    ],
    [{ keepOnFailure: true }, { kept: 1 }, 'keepOnFailure', 'SHELLFLEET_KEEP_CONTAINERS'],
    [
      { redactFormats: false },
      { redactFormats: true },
      'redactFormats',
      'SHELLFLEET_ALLOW_UNREDACTED=1, or allow.redactFormats of SHELLFLEET_CONFIG',
    ],
  ])('refuses %j if the operator allows nothing, but not with %j', (spec, offer, path, setting) => {
    expect(refused(spec, {})).toEqual([[path, setting]]);
    expect(refused(spec, offer)).toEqual([]);
  });

  test.each<[SessionSpec, Partial<HostOffer>, string, string | undefined]>([
    [{ image: 'debian:12' }, { images: ['node'] }, 'image', 'SHELLFLEET_IMAGES'],
    [{ user: '7:7' }, { ownUids: true }, 'user', 'SHELLFLEET_UIDS'],
    [
      limited,
      { networks: ['limited'], hosts: ['b.example.org'] },
      'sandbox.allowedHosts',
      'allow.hosts of SHELLFLEET_CONFIG',
    ],
    [{ limits: { memoryBytes: 2 * GIB } }, { memoryBytes: GIB }, 'limits.memoryBytes', undefined],
    [{ limits: { cpus: 2 } }, { cpus: 1 }, 'limits.cpus', undefined],
    [{ limits: { diskBytes: GIB } }, { diskQuota: false }, 'limits.diskBytes', undefined],
    [{ policy: 'host', limits: { pids: 64 } }, { controlGroups: false }, 'limits.pids', undefined],
  ])('makes a host refuse the spec %j if it is %j', (spec, offer, path, setting) => {
    expect(refused(spec, offer)).toEqual([[path, setting]]);
  });

  test('lets a Pod reach names where the fleet has an egress proxy', () => {
    const offer = { networks: ['limited'], hosts: ['a.example.org'] };
    const spec = { policy: 'kubernetes' as const, ...limited };
    expect(refused(spec, offer)).toEqual([
      ['sandbox.network', 'egress of the section kubernetes in SHELLFLEET_CONFIG'],
    ]);
    expect(refused(spec, { ...offer, cluster: { ...CLUSTER, egress: true } })).toEqual([]);
  });

  test('does not refuse a field that every host would refuse', () => {
    expect(refused({ limits: { cpuTimeSeconds: 10 } }, {})).toEqual([]);
    expect(refused({ cwd: '/proc/self/fd/7' }, {})).toEqual([]);
  });
});
