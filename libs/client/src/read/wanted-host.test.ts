import { sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { wantedHost } from './wanted-host.ts';

const wantedOf = (spec: object) => wantedHost(sessionSpecSchema.parse(spec));

describe('the host that a session wants', () => {
  test('must offer its policy, and nothing else by default', () => {
    expect(wantedOf({})).toEqual({ needs: { policy: 'docker' } });
  });

  test('must allow what some hosts refuse, and had better meet its wishes', () => {
    const sandbox = { mode: 'workspace-write', network: 'limited', allowedHosts: ['a.example', 'b.example'] };
    const limits = { memoryBytes: 2 ** 30, cpus: 1 };
    const spec = { image: 'alpine:3', user: '1:1', workspace: '/srv/data', near: 'other', priority: 5 };
    const hosts = { zone: 'a', gpu: 'yes' };
    expect(wantedOf({ ...spec, sandbox, limits, hosts, redactFormats: false, keepOnFailure: true })).toEqual({
      needs: {
        ...{ policy: 'docker', image: 'alpine:3', user: '1:1', workspace: '/srv/data' },
        ...{ 'sandbox.mode': 'workspace-write', 'sandbox.network': 'limited' },
        ...{ 'sandbox.allowedHosts': 'a.example b.example', 'limits.memoryBytes': '1073741824' },
        ...{ redactFormats: 'false', keepOnFailure: 'true', hosts: 'gpu=yes zone=a' },
      },
      wishes: { image: 'alpine:3', near: 'other' },
    });
  });

  test('must have resources and RuntimeClass of a Pod, but no limit that all give', () => {
    const policy = { type: 'kubernetes', runtimeClass: 'gvisor' };
    const limits = { cpus: 1, pids: 64, resources: { 'nvidia.com/gpu': 2 } };
    expect(wantedOf({ policy, limits }).needs).toEqual({
      ...{ policy: 'kubernetes', 'policy.runtimeClass': 'gvisor' },
      ...{ 'limits.pids': '64', 'limits.resources.nvidia.com/gpu': '2' },
    });
  });
});
