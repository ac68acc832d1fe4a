import { describe, expect, test } from 'vitest';
import { podSchema } from '../api-server/pod-schema.ts';
import { samplePod } from '../sample-pod.ts';
import { expand, type FromNode, toCreateOptions } from './container-options.ts';
import type { Pod } from './pod-status.ts';

const node: FromNode = {
  binds: ['/a:/b:ro'],
  tmpfs: { '/run': 'rw' },
  network: 'pods',
  podIp: '10.1.0.2',
  labels: { owner: 'tests' },
  podPidsLimit: 64,
  env: { KUBERNETES_SERVICE_HOST: '127.0.0.1' },
};

function optionsOf(parts: Parameters<typeof samplePod>[1], qosClass = 'Guaranteed') {
  const parsed = podSchema.parse(samplePod('a', parts));
  const metadata = { ...parsed.metadata, namespace: 'n', uid: 'u' };
  const pod = { ...parsed, metadata, status: { phase: 'Pending', qosClass } } as unknown as Pod;
  const [container] = pod.spec.containers;
  if (!container) throw new Error('the Pod has no container');
  return toCreateOptions(pod, container, node);
}

describe('options of a container', () => {
  test('keep what the Pod asks for', () => {
    const { HostConfig, ...options } = optionsOf({
      container: {
        command: ['/sf/keeper', '$(A)', '$$(A)'],
        env: [{ name: 'A', value: 'b' }],
        workingDir: '/workspace',
        resources: { limits: { cpu: '1500m', memory: '64Mi' } },
      },
      spec: { hostname: 'session' },
    });
    expect(options).toMatchObject({
      Image: 'busybox:1',
      Entrypoint: ['/sf/keeper', 'b', '$(A)'],
      Cmd: [],
      Env: ['KUBERNETES_SERVICE_HOST=127.0.0.1', 'A=b'],
      WorkingDir: '/workspace',
      Hostname: 'session',
      User: '1000:1000',
      NetworkingConfig: { EndpointsConfig: { pods: { IPAMConfig: { IPv4Address: '10.1.0.2' } } } },
      Labels: { owner: 'tests', 'io.kubernetes.pod.uid': 'u' },
    });
    expect(HostConfig).toMatchObject({
      Binds: ['/a:/b:ro'],
      Tmpfs: { '/run': 'rw' },
      GroupAdd: ['1000'],
      CapDrop: ['ALL'],
      Privileged: false,
      SecurityOpt: ['no-new-privileges'],
      Memory: 67_108_864,
      MemorySwap: 67_108_864,
      CpuPeriod: 100_000,
      CpuQuota: 150_000,
      PidsLimit: 64,
      NetworkMode: 'pods',
    });
  });

  test('turn no filter on where the Pod asks for none', () => {
    const { HostConfig } = optionsOf({ spec: { securityContext: {} } });
    expect(HostConfig?.SecurityOpt).toContain('seccomp=unconfined');
  });

  test('leave the program of the image where the Pod names none', () => {
    const options = optionsOf({});
    expect(options).not.toHaveProperty('Entrypoint');
    expect(options).not.toHaveProperty('Cmd');
  });

  test.each([
    ['$(A)', 'a'],
    ['x$(A)$(B)', 'xa$(B)'],
    ['$$(A)', '$(A)'],
    ['$A $', '$A $'],
  ])('expand %j', (text, expected) => {
    expect(expand(text, { A: 'a' })).toBe(expected);
  });
});
