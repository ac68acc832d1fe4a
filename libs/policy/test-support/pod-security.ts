import type { PodManifest } from '../src/execution/kubernetes-pod.ts';

// The checks of Pod Security `restricted`, and what Shellfleet promises beyond it, written down a second time so that a
// test can compare a manifest with them.

/** Volumes that `restricted` admits, of those that a manifest here may have. */
const VOLUMES = ['emptyDir', 'persistentVolumeClaim', 'ephemeral', 'image'];
const HOST_FIELDS = ['hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace', 'nodeName', 'ephemeralContainers'];

/** Returns the paths of the fields that weaken a Pod. */
export function weakFields({ spec }: PodManifest): string[] {
  const { securityContext: pod } = spec;
  const checks: [string, boolean][] = [
    ...HOST_FIELDS.map((field): [string, boolean] => [field, !(field in spec)]),
    ['automountServiceAccountToken', spec.automountServiceAccountToken === false],
    ['enableServiceLinks', spec.enableServiceLinks === false],
    ['restartPolicy', spec.restartPolicy === 'Never'],
    ['activeDeadlineSeconds', spec.activeDeadlineSeconds > 0],
    ['hostUsers', spec.hostUsers !== (true as never)],
    ['securityContext.runAsNonRoot', pod.runAsNonRoot === true],
    ['securityContext.runAsUser', pod.runAsUser > 0],
    ['securityContext.runAsGroup', pod.runAsGroup > 0],
    ['securityContext.fsGroup', pod.fsGroup > 0],
    ['securityContext.seccompProfile', pod.seccompProfile?.type === 'RuntimeDefault'],
    ['securityContext.sysctls', !('sysctls' in pod)],
    ['securityContext.supplementalGroups', !('supplementalGroups' in pod)],
    ...spec.volumes.map((volume): [string, boolean] => [
      `volumes.${volume.name}`,
      Object.keys(volume).every((field) => field === 'name' || VOLUMES.includes(field)),
    ]),
    ...[...(spec.initContainers ?? []), ...spec.containers].flatMap((container) => checkContainer(container)),
  ];
  return checks.filter(([, isStrong]) => !isStrong).map(([path]) => path);
}

function checkContainer(container: PodManifest['spec']['containers'][0]): [string, boolean][] {
  const { securityContext, volumeMounts, resources } = container;
  const at = (field: string, isStrong: boolean): [string, boolean] => [`${container.name}.${field}`, isStrong];
  const hasOwn = (field: string) => field in securityContext;
  return [
    at('privileged', securityContext.privileged === false),
    at('allowPrivilegeEscalation', securityContext.allowPrivilegeEscalation === false),
    at('capabilities.drop', securityContext.capabilities?.drop?.includes('ALL') === true),
    at('capabilities.add', !('add' in (securityContext.capabilities ?? {}))),
    at('procMount', !hasOwn('procMount')),
    at('overrides', !['runAsUser', 'runAsGroup', 'runAsNonRoot', 'seccompProfile', 'appArmorProfile'].some(hasOwn)),
    at(
      'hostPort',
      (container.ports ?? []).every((port) => !('hostPort' in port)),
    ),
    at('stdin', container.stdin === false && container.tty === false),
    at('terminationMessagePolicy', container.terminationMessagePolicy === 'File'),
    at(
      'probes',
      !['livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle', 'envFrom'].some((f) => f in container),
    ),
    at('sf', container.name !== 'shell' || volumeMounts.find(({ name }) => name === 'sf')?.readOnly === true),
    at(
      'mountPropagation',
      volumeMounts.every((mount) => !('mountPropagation' in mount)),
    ),
    at(
      'resources',
      ['cpu', 'memory', 'ephemeral-storage'].every((name) => resources.limits[name] !== undefined),
    ),
    at('requests', JSON.stringify(resources.requests) === JSON.stringify(resources.limits)),
  ];
}
