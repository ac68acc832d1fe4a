import type { ChartValues } from '../support/chart-values.ts';
import { type ChartObject, NAMESPACE } from '../support/render-chart.ts';

/** Least seconds that a balancer or an ingress must wait for a command of `Prefer: wait=300`, in annotations. */
const LONGEST_WAIT_S = 300;

/** Returns where the API would not be reached, would be reached without TLS, or would lose requests in a rollout. */
export function findApiFaults(objects: readonly ChartObject[], values: NonNullable<ChartValues['api']>): string[] {
  const find = (kind: string) => objects.find((one) => one.kind === kind && one.metadata.name.endsWith('-api'));
  const deployment = find('Deployment');
  if (deployment === undefined) return find('Service') === undefined ? [] : ['the Service api has no Pods'];
  const pod = deployment.spec.template.spec;
  const [container] = pod.containers;
  const env = container.env as { name: string; value?: string }[];
  const settingOf = (name: string) => env.find((one) => one.name === name)?.value;
  const hosts = settingOf('SHELLFLEET_API_ALLOWED_HOSTS')?.split(',') ?? [];
  const wanted = [`trial-shellfleet-api.${NAMESPACE}.svc`, ...(values.ingress ? [values.ingress.host] : [])];
  const ports = Object.fromEntries(
    container.ports.map(({ name, containerPort }: { name: string; containerPort: number }) => [name, containerPort]),
  );
  const hasTls = values.tls !== undefined;
  return [
    settingOf('SHELLFLEET_API_HOST') !== '::' && 'the API listens in its Pod alone',
    settingOf('SHELLFLEET_API_METRICS_HOST') !== '::' && 'probes do not reach the API',
    settingOf('SHELLFLEET_API_PORT') !== String(ports.api) && 'the port of the API differs',
    settingOf('SHELLFLEET_API_METRICS_PORT') !== String(ports.metrics) && 'the port of its metrics differs',
    (settingOf('SHELLFLEET_API_INSECURE_HTTP') === '1') === hasTls && 'the API does not start, or has no TLS',
    (settingOf('SHELLFLEET_API_TLS_CERT') !== undefined) !== hasTls && 'the API does not use its certificate',
    ...wanted.map((host) => !hosts.includes(host) && `the API refuses callers of ${host}`),
    ...env.map(({ name }, index) => env.findIndex((one) => one.name === name) !== index && `${name} is given twice`),
    ...['startupProbe', 'livenessProbe', 'readinessProbe'].map(
      (probe) => container[probe]?.httpGet?.port !== 'metrics' && `the ${probe} of the API needs a key`,
    ),
    container.readinessProbe?.httpGet?.path !== '/readyz' && 'the readiness of the API is not asked at /readyz',
    !container.lifecycle?.preStop && 'the API ends while balancers send it requests',
    pod.terminationGracePeriodSeconds < 15 && 'requests have no time to finish',
    pod.automountServiceAccountToken !== false && 'the API has a token of the cluster',
    pod.serviceAccountName !== undefined && 'the API has an account of the cluster',
    deployment.spec.strategy.rollingUpdate.maxUnavailable !== 0 && 'a rollout has fewer servers for a while',
    ...checkService(find('Service')),
    ...checkIngress(find('Ingress')?.spec, find('Ingress')?.metadata.annotations ?? {}, values),
  ].filter((fault) => fault !== false);
}

function checkService(service: ChartObject | undefined): (string | false)[] {
  const [port, ...others] = service?.spec.ports ?? [];
  return [
    (port?.targetPort !== 'api' || port.port !== 7410) && 'the Service leads to another port than that of the API',
    others.length > 0 && 'the Service opens a second port',
  ];
}

function checkIngress(
  // biome-ignore lint/suspicious/noExplicitAny: the models have validated it.
  ingress: any,
  annotations: Record<string, string>,
  { ingress: wanted }: NonNullable<ChartValues['api']>,
): (string | false)[] {
  if (wanted === undefined) return [ingress !== undefined && 'there is an Ingress that nobody wants'];
  const waits = Object.entries(annotations).filter(([name]) => name.endsWith('proxy-read-timeout'));
  return [
    ingress?.tls[0].hosts.join() !== wanted.host && 'the Ingress has no TLS for its host',
    ingress?.rules[0].host !== wanted.host && 'the Ingress serves another host',
    waits.length < 2 && 'the Ingress may cut a stream after a minute',
    ...waits.map(([name, text]) => Number.parseInt(text, 10) < LONGEST_WAIT_S && `${name} cuts a wait`),
  ];
}
