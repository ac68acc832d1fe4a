import type { ChartObject } from '../support/render-chart.ts';

// biome-ignore lint/suspicious/noExplicitAny: the models have validated them.
type Pod = any;

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

/** The only hook: a pause in which balancers notice that a Pod ends. */
const A_PAUSE = '{"preStop":{"exec":{"command":["sleep","5"]}}}';

/** Returns the Pod templates of the objects, with the object's name. */
export function podTemplates(objects: readonly ChartObject[]): { name: string; labels: object; pod: Pod }[] {
  return objects
    .filter(({ spec }) => spec?.template?.spec?.containers)
    .map(({ kind, metadata, spec }) => ({
      name: `${kind} ${metadata.name}`,
      labels: spec.template.metadata?.labels ?? {},
      pod: spec.template.spec,
    }));
}

/**
 * Returns where a Pod template needs more than Pod Security `restricted` admits
 * (https://kubernetes.io/docs/concepts/security/pod-security-standards/), or more than this chart wants.
 */
export function findPodFaults(objects: readonly ChartObject[]): string[] {
  return podTemplates(objects).flatMap(({ name, pod }) =>
    [...checkPod(pod), ...allContainers(pod).flatMap((one) => checkContainer(one, pod))].map(
      (fault) => `${name}: ${fault}`,
    ),
  );
}

const allContainers = (pod: Pod) => [
  ...(pod.initContainers ?? []),
  ...pod.containers,
  ...(pod.ephemeralContainers ?? []),
];

function checkPod(pod: Pod): string[] {
  const security = pod.securityContext ?? {};
  return [
    ...['hostNetwork', 'hostPID', 'hostIPC'].map((field) => pod[field] && `has ${field}`),
    pod.shareProcessNamespace && 'shares its process namespace',
    security.seLinuxOptions && 'sets seLinuxOptions',
    security.sysctls && 'sets sysctls',
    security.runAsNonRoot !== true && 'may run as root',
    !(security.runAsUser > 0) && 'has no uid above 0',
    !(security.runAsGroup > 0) && 'has no gid above 0',
    security.seccompProfile?.type !== 'RuntimeDefault' && 'has no seccomp profile',
    pod.enableServiceLinks !== false && 'has the variables of services',
    pod.automountServiceAccountToken === undefined && 'does not say whether it has a token',
    ...(pod.volumes ?? []).map((volume: Record<string, unknown>) => {
      const [type = 'nothing'] = Object.keys(volume).filter((key) => key !== 'name');
      return !VOLUMES.includes(type) && `has the volume ${volume.name} of type ${type}`;
    }),
    ...(pod.volumes ?? []).map(
      ({ name, emptyDir }: Pod) => emptyDir && !emptyDir.sizeLimit && `has the volume ${name} without a limit`,
    ),
  ].filter(Boolean);
}

function checkContainer({ name, ...container }: Pod, pod: Pod): string[] {
  const security = container.securityContext ?? {};
  const drops = security.capabilities?.drop ?? [];
  return [
    security.privileged !== false && 'is privileged',
    security.allowPrivilegeEscalation !== false && 'may gain privileges',
    security.readOnlyRootFilesystem !== true && 'writes to its root',
    !(drops.length === 1 && drops[0] === 'ALL') && 'keeps capabilities',
    security.capabilities?.add && 'adds capabilities',
    security.procMount && 'sets procMount',
    security.runAsUser === 0 && 'runs as root',
    security.runAsNonRoot === false && 'may run as root',
    security.seccompProfile && security.seccompProfile.type !== 'RuntimeDefault' && 'weakens its seccomp profile',
    security.appArmorProfile?.type === 'Unconfined' && 'has no AppArmor profile',
    container.lifecycle && JSON.stringify(container.lifecycle) !== A_PAUSE && 'has hooks',
    (container.stdin || container.tty) && 'has a terminal',
    !container.resources?.limits?.memory && 'has no limit of memory',
    ...(container.ports ?? []).map(({ hostPort }: Pod) => hostPort && `takes port ${hostPort} of its node`),
    ...(container.volumeMounts ?? []).map((mount: Pod) => checkMount(mount, pod)),
  ]
    .filter(Boolean)
    .map((fault) => `${name} ${fault}`);
}

function checkMount({ name, readOnly }: Pod, pod: Pod): string | false {
  const volume = (pod.volumes ?? []).find((one: Pod) => one.name === name);
  return Boolean(volume?.secret || volume?.configMap) && readOnly !== true && `writes to the volume ${name}`;
}
