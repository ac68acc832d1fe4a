import { type ChartObject, NAMESPACE } from '../support/render-chart.ts';

interface Options {
  sessionsNamespace: string;
  networks: readonly string[];
  /** Peers that may call the API, and further rules for what it reaches. */
  apiClients: readonly object[];
  apiEgress: readonly object[];
}

const SESSION = { 'app.kubernetes.io/managed-by': 'shellfleet' };
const part = (component: string) => ({
  'app.kubernetes.io/name': 'shellfleet',
  'app.kubernetes.io/instance': 'trial',
  'app.kubernetes.io/component': component,
});
const peer = (namespace: string, matchLabels: object) => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
  podSelector: { matchLabels },
});
const tcp = (...ports: number[]) => ports.map((port) => ({ protocol: 'TCP', port }));
const DNS = {
  to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } }],
  ports: [
    { protocol: 'UDP', port: 53 },
    { protocol: 'TCP', port: 53 },
  ],
};

/** Returns where the NetworkPolicies let more or less through than what each part needs. */
export function findNetworkFaults(objects: readonly ChartObject[], options: Options): string[] {
  const { sessionsNamespace, networks } = options;
  const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy');
  const has = (component: string) =>
    policies.some(({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === component);
  const wanted: Record<string, object> = {
    ...(sessionsNamespace !== NAMESPACE && {
      'default-deny': { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
    }),
    sessions: {
      podSelector: { matchLabels: SESSION },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [peer(NAMESPACE, part('worker'))], ports: tcp(7443) }],
      egress: [],
    },
    ...(networks.includes('full') && {
      'sessions-full': {
        podSelector: { matchLabels: { ...SESSION, 'shellfleet.dev/network': 'full' } },
        policyTypes: ['Egress'],
        egress: [DNS, OUTSIDE],
      },
    }),
    ...(has('egress') && {
      'sessions-limited': {
        podSelector: { matchLabels: { ...SESSION, 'shellfleet.dev/network': 'limited' } },
        policyTypes: ['Egress'],
        egress: [{ to: [peer(NAMESPACE, part('egress'))], ports: tcp(3128) }],
      },
      egress: {
        podSelector: { matchLabels: part('egress') },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [
          { from: [peer(sessionsNamespace, { ...SESSION, 'shellfleet.dev/network': 'limited' })], ports: tcp(3128) },
        ],
        egress: [DNS, OUTSIDE],
      },
    }),
    ...(has('redis') && {
      redis: {
        podSelector: { matchLabels: part('redis') },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [
          {
            from: ['worker', ...(has('api') ? ['api'] : [])].map((one) => peer(NAMESPACE, part(one))),
            ports: tcp(6379),
          },
        ],
        egress: [],
      },
    }),
  };
  const found = Object.fromEntries(policies.map(({ metadata, spec }) => [nameOf(metadata.name), spec]));
  const { worker, api, ...others } = found;
  const names = [...new Set([...Object.keys(wanted), ...Object.keys(others)])];
  return [
    ...names.filter((name) => !isEqual(others[name], wanted[name])).map((name) => `the NetworkPolicy ${name} differs`),
    ...checkWorker(worker, { sessionsNamespace, hasRedis: has('redis') }),
    ...(objects.some(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-api'))
      ? checkApi(api, { ...options, hasRedis: has('redis') })
      : []),
  ];
}

/** Returns where the API is called by others than its clients and KEDA, or reaches more than names and Redis. */
// biome-ignore lint/suspicious/noExplicitAny: the models have validated it.
function checkApi(api: any, { apiClients, apiEgress, hasRedis }: Options & { hasRedis: boolean }): string[] {
  if (api === undefined) return ['the NetworkPolicy api is missing'];
  const calls = api.ingress.filter(({ ports }: { ports?: object[] }) => isEqual(ports, tcp(7410)));
  const metrics = api.ingress.filter(({ ports }: { ports?: object[] }) => isEqual(ports, tcp(9464)));
  const ofKeda = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'keda' } } };
  const callers = (calls[0]?.from ?? []).filter((one: object) => !isEqual(one, ofKeda));
  const redis = hasRedis ? { to: [peer(NAMESPACE, part('redis'))], ports: tcp(6379) } : { ports: tcp(6379) };
  const known = [DNS, redis, { ports: tcp(443) }, ...apiEgress];
  return [
    !isEqual(api.podSelector, { matchLabels: part('api') }) && 'selects other Pods',
    !isEqual(api.policyTypes, ['Ingress', 'Egress']) && 'leaves a direction open',
    !isEqual(callers, apiClients) && 'lets others call than apiClients',
    calls.length + metrics.length !== api.ingress.length && 'opens another port',
    api.ingress.some(({ from = [] }: { from?: object[] }) => from.length === 0) && 'lets everybody in',
    api.egress.some((one: object) => !known.some((rule) => isEqual(rule, one))) && 'reaches too much',
    hasRedis && !api.egress.some((one: object) => isEqual(one, redis)) && 'does not reach Redis',
  ]
    .filter((fault) => fault !== false)
    .map((fault) => `the NetworkPolicy api ${fault}`);
}

const OUTSIDE = {
  to: [
    {
      ipBlock: {
        cidr: '0.0.0.0/0',
        except: [
          ...['169.254.0.0/16', '168.63.129.16/32', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'],
          ...['192.0.0.0/24', '198.18.0.0/15'],
        ],
      },
    },
    { ipBlock: { cidr: '::/0', except: ['fc00::/7', 'fe80::/10', '64:ff9b::/96', 'fd00:ec2::254/128'] } },
  ],
};

function checkWorker(
  // biome-ignore lint/suspicious/noExplicitAny: the models have validated it.
  worker: any,
  { sessionsNamespace, hasRedis }: { sessionsNamespace: string; hasRedis: boolean },
): string[] {
  if (worker === undefined) return ['the NetworkPolicy worker is missing'];
  const reached = worker.egress.flatMap(({ ports = [{}], to }: { ports?: { port?: number }[]; to?: object[] }) =>
    ports.map(({ port }) => ({ port, isAnywhere: to === undefined })),
  ) as { port?: number; isAnywhere: boolean }[];
  const sessions = { to: [peer(sessionsNamespace, SESSION)], ports: tcp(7443) };
  const redis = { to: [peer(NAMESPACE, part('redis'))], ports: tcp(6379) };
  return [
    hasRedis && !worker.egress.some((one: object) => isEqual(one, redis)) && 'does not reach Redis alone',
    hasRedis && reached.some(({ port, isAnywhere }) => isAnywhere && port === 6379) && 'reaches other Redis',
    !isEqual(worker.podSelector, { matchLabels: part('worker') }) && 'selects other Pods',
    !isEqual(worker.policyTypes, ['Ingress', 'Egress']) && 'leaves a direction open',
    reached.some(({ port }) => port === undefined) && 'reaches every port',
    reached.some(({ port, isAnywhere }) => isAnywhere && ![443, 6443, 8443, 16443, 6379].includes(port ?? 0)) &&
      'reaches too much',
    !worker.egress.some((one: object) => isEqual(one, sessions)) && 'does not reach sessions alone on their port',
    worker.ingress.some(({ from = [] }: { from?: object[] }) => from.length === 0) && 'lets everybody in',
    worker.ingress.some(({ ports }: { ports?: object[] }) => !isEqual(ports, tcp(9464))) && 'opens another port',
  ]
    .filter((fault) => fault !== false)
    .map((fault) => `the NetworkPolicy worker ${fault}`);
}

const nameOf = (name: string): string => name.replace('trial-shellfleet-', '');
const isEqual = (one: unknown, other: unknown): boolean => sorted(one) === sorted(other);

/** Returns the value as JSON, whose fields have one order. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, one) =>
    one && typeof one === 'object' && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}
