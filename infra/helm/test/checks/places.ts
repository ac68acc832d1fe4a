import { type ChartObject, NAMESPACE, RELEASE } from '../support/render-chart.ts';
import { podTemplates } from './pods.ts';

const KINDS = [
  'ConfigMap',
  'Deployment',
  'Ingress',
  'Lease',
  'NetworkPolicy',
  'PodDisruptionBudget',
  'PodMonitor',
  'ResourceQuota',
  'Role',
  'RoleBinding',
  'ScaledObject',
  'Secret',
  'Service',
  'ServiceAccount',
  'ServiceMonitor',
  'StatefulSet',
  'TriggerAuthentication',
];
/** Objects in the sessions' namespace, by kind and by the end of their names. */
const OF_SESSIONS = [
  /^Lease trial-shellfleet$/,
  /^NetworkPolicy .*-(default-deny|sessions(-full|-limited)?)$/,
  /^ResourceQuota /,
  /^Role(Binding)? /,
  /^ServiceAccount .*-session$/,
];

/**
 * Returns objects of kinds that belong to the whole cluster or that the chart does not have, objects in another
 * namespace than theirs, two of one name, hooks, and references to objects that nobody makes.
 */
export function findPlaceFaults(objects: readonly ChartObject[], sessionsNamespace: string): string[] {
  const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`);
  return [
    ...names.map((name, index) => names.indexOf(name) !== index && `${name} is made twice`),
    ...objects.flatMap((object) => checkObject(object, sessionsNamespace)),
    ...findDanglingFaults(objects, names),
  ].filter((fault) => fault !== false);
}

function checkObject({ kind, metadata }: ChartObject, sessionsNamespace: string): (string | false)[] {
  const name = `${kind} ${metadata.name}`;
  const isOfSessions = OF_SESSIONS.some((pattern) => pattern.test(name));
  const wanted = isOfSessions ? sessionsNamespace : NAMESPACE;
  return [
    !KINDS.includes(kind) && `${name} is of a kind that the chart does not have`,
    metadata.namespace !== wanted && `${name} is in ${metadata.namespace} and not in ${wanted}`,
    !metadata.name.startsWith(`${RELEASE}-shellfleet`) && `${name} does not name its release`,
    metadata.labels?.['app.kubernetes.io/instance'] !== RELEASE && `${name} lacks the label of its release`,
    metadata.annotations?.['helm.sh/hook'] !== undefined && `${name} is a hook, which an uninstall leaves`,
    kind !== 'Secret' && metadata.annotations?.['helm.sh/resource-policy'] !== undefined && `${name} is left behind`,
  ];
}

function findDanglingFaults(objects: readonly ChartObject[], made: readonly string[]): (string | false)[] {
  const has = (kind: string, name: string) =>
    name.startsWith('given-') || made.includes(`${kind} ${NAMESPACE}/${name}`);
  return podTemplates(objects).flatMap(({ name, pod, labels }) => [
    ...[...JSON.stringify(pod).matchAll(/"secret(?:KeyRef":\{"name|Name)":"([^"]+)"/g)].map(
      ([, secret = '']) => !has('Secret', secret) && `${name} refers to the Secret ${secret}, which nobody makes`,
    ),
    ...pod.volumes.map(
      ({ configMap }: { configMap?: { name: string } }) =>
        configMap !== undefined &&
        !has('ConfigMap', configMap.name) &&
        `${name} refers to the ConfigMap ${configMap.name}, which nobody makes`,
    ),
    pod.serviceAccountName !== undefined &&
      !has('ServiceAccount', pod.serviceAccountName) &&
      `${name} has the account ${pod.serviceAccountName}, which nobody makes`,
    'app.kubernetes.io/managed-by' in labels && `${name} would be taken for a session`,
  ]);
}
