import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { isParticular } from './particular.ts';
import { parseClass, placementClass, toPlacement } from './placement.ts';

const GIB = 2 ** 30;
const particular = (spec: SessionSpec) => isParticular(sessionSpecSchema.parse(spec));

describe('a session', () => {
  test.each<[string, SessionSpec]>([
    ['nothing', {}],
    ['less than its policy gives', { sandbox: { mode: 'read-only', network: 'restricted' }, limits: { cpus: 0.5 } }],
    ['whatever the host policy has', { policy: 'host', sandbox: { mode: 'external', network: 'full' } }],
    ['a sandbox that its class names', { sandbox: { mode: 'danger-full-access', network: 'full' } }],
    ['no sandbox', { sandbox: { selection: 'forbid' } }],
    ['the usual limits of a Pod', { policy: 'kubernetes', limits: { cpus: 0.5 } }],
    ['labels of its host', { hosts: { gpu: 'yes' } }],
    ['settings that no host refuses', { env: { A: 'b' }, cwd: '/tmp', labels: { a: 'b' }, idleTimeoutMs: 1_000 }],
  ])('that asks for %s is not particular', (_title, spec) => {
    expect(particular(spec)).toBe(false);
  });

  test.each<[string, SessionSpec]>([
    ['an image', { image: 'debian:12' }],
    ['a user', { user: '1000:1000' }],
    ['a workspace', { workspace: '/srv/work' }],
    ['a container runtime', { policy: { type: 'docker', runtime: 'runsc' } }],
    ['names on the network', { sandbox: { network: 'limited', allowedHosts: ['example.org'] } }],
    ['much memory', { limits: { memoryBytes: 2 * GIB } }],
    ['a RuntimeClass', { policy: { type: 'kubernetes', runtimeClass: 'gvisor' } }],
    ['a bound on the processes of its Pod', { policy: 'kubernetes', limits: { pids: 128 } }],
    ['a resource of its cluster', { policy: 'kubernetes', limits: { resources: { 'nvidia.com/gpu': 1 } } }],
    ['a quota of its disk', { limits: { diskBytes: GIB } }],
    ['bounds of a session without a container', { policy: 'host', limits: { pids: 32 } }],
    ['output without the built-in redaction', { redactFormats: false }],
    ['a container for a post-mortem', { keepOnFailure: true }],
  ])('that asks for %s may be refused by a host that offers its class', (_title, spec) => {
    expect(particular(spec)).toBe(true);
  });

  test('that is particular waits in one queue of its policy, whatever it asks for', () => {
    const names = [{ image: 'debian:12' }, { user: 'root' }, { keepOnFailure: true }].map((spec) =>
      placementClass(toPlacement(sessionSpecSchema.parse(spec), '2.key')),
    );
    expect([...new Set(names)]).toEqual(['docker+particular~2.key']);
    expect(parseClass(names[0]!)).toMatchObject({ policy: 'docker', particular: true, schema: 2, keyId: 'key' });
  });
});
