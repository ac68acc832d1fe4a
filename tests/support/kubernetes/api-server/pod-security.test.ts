import { describe, expect, test } from 'vitest';
import { samplePod } from '../sample-pod.ts';
import { podSchema } from './pod-schema.ts';
import { restrictedViolations } from './pod-security.ts';

const violations = (parts: Parameters<typeof samplePod>[1], annotations?: Record<string, string>) =>
  restrictedViolations(podSchema.parse(samplePod('a', parts)).spec, annotations)?.replace(
    'violates PodSecurity "restricted:latest": ',
    '',
  );

const secure = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
const container = (fields: object) => ({ container: { securityContext: { ...secure, ...fields } } });
const pod = (fields: object) => ({
  spec: { securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' }, ...fields } },
});

describe('the level restricted', () => {
  test('admits the sample', () => {
    expect(violations({})).toBeUndefined();
  });

  test.each([
    [{ spec: { hostNetwork: true, hostPID: true } }, 'host namespaces (hostNetwork=true, hostPID=true)'],
    [
      { container: { ports: [{ containerPort: 1, hostPort: 80 }], securityContext: secure } },
      'hostPort (container "shell" uses hostPort 80)',
    ],
    [container({ privileged: true }), 'privileged (container "shell" must not set securityContext.privileged=true)'],
    [
      { spec: { volumes: [{ name: 'h', hostPath: { path: '/' } }] } },
      'restricted volume types (volume "h" uses restricted volume type "hostPath")',
    ],
    [
      container({ allowPrivilegeEscalation: undefined }),
      'allowPrivilegeEscalation != false (container "shell" must set securityContext.allowPrivilegeEscalation=false)',
    ],
    [
      container({ capabilities: { drop: ['CHOWN'], add: ['SYS_ADMIN', 'NET_BIND_SERVICE'] } }),
      'unrestricted capabilities (container "shell" must set securityContext.capabilities.drop=["ALL"]; container "shell" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
    ],
    [
      pod({ runAsNonRoot: undefined }),
      'runAsNonRoot != true (pod or container "shell" must set securityContext.runAsNonRoot=true)',
    ],
    [
      container({ runAsNonRoot: false }),
      'runAsNonRoot != true (container "shell" must not set securityContext.runAsNonRoot=false)',
    ],
    [pod({ runAsUser: 0 }), 'runAsUser=0 (pod must not set runAsUser=0)'],
    [
      pod({ seccompProfile: undefined }),
      'seccompProfile (pod or container "shell" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ],
    [
      pod({ seccompProfile: { type: 'Unconfined' } }),
      'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
    [
      container({ procMount: 'Unmasked' }),
      'procMount (container "shell" must not set securityContext.procMount to "Unmasked")',
    ],
    [pod({ sysctls: [{ name: 'kernel.msgmax', value: '1' }] }), 'forbidden sysctls (kernel.msgmax)'],
    [
      pod({ seLinuxOptions: { type: 'spc_t', user: 'a' } }),
      'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set)',
    ],
    [
      pod({ appArmorProfile: { type: 'Unconfined' } }),
      'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ],
    [
      pod({ windowsOptions: { hostProcess: true } }),
      'hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)',
    ],
    [
      { container: { livenessProbe: { httpGet: { host: 'a', port: 1 } }, securityContext: secure } },
      'probe or lifecycle host (container "shell" uses probe or lifecycle host "a")',
    ],
  ])('refuses %j', (parts, message) => {
    expect(violations(parts)).toBe(message);
  });

  test('names all that it refuses, and containers of initialization too', () => {
    const init = { name: 'keeper', image: 'a', securityContext: { ...secure, privileged: true } };
    expect(violations({ spec: { hostIPC: true, initContainers: [init] } })).toBe(
      'host namespaces (hostIPC=true), privileged (container "keeper" must not set securityContext.privileged=true)',
    );
  });
});
